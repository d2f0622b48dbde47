"""Receive: OTLP bytes to spans, over gRPC and HTTP, durable before acknowledged."""
