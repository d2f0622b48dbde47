"""What several checks share: effects, provenance, claims, errors in bodies, JSON Schema."""
