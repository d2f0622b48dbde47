"""The agent's side: spans for tool calls, written honestly."""
