"""Rules are data: loading, expressions, inline tests, mutation; the catalogue file and the settings."""
