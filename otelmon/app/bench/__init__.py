"""Benchmarks: every published figure comes from a command here, into one file."""
