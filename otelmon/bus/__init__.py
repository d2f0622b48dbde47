"""How messages travel between stages: one protocol, an embedded durable spool, and Kafka."""
