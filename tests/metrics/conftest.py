"""The full monitor for the tests of metrics."""

from tests.services.full import full as full
