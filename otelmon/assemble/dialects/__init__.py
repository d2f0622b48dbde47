"""How instrumentations write spans. One file a dialect; nothing else names a foreign attribute key."""
