"""Real services that tests run."""
