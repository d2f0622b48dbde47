"""Detect: conversations, the rules that judge them, and the effect ledger."""
