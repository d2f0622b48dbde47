"""The composition root: stages, bus and servers put together from a configuration."""
