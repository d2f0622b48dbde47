"""How messages travel between stages: one protocol, an embedded durable spool, and Kafka."""

from otelmon.bus.errors import BackpressureError, RecordTooLargeError
from otelmon.bus.open import open_bus
from otelmon.bus.protocol import Bus, Consumer, Delivered, Outgoing

__all__ = ["BackpressureError", "Bus", "Consumer", "Delivered", "Outgoing", "RecordTooLargeError", "open_bus"]
