"""Assemble: spans to readings (dialects), readings to a timeline of events."""
