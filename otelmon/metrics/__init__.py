"""Metrics: one table of them, their exporter, and what is generated from the table."""
