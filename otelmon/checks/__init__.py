"""Checks: pure functions from a conversation to evidence. One file a check; lib/ for what they share."""
