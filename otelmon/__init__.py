"""otelmon: an online monitor for the tool calls of production AI agents."""

__version__ = "0.1.0"
