"""Golden tasks: an incident frozen as a case that fails until the agent is fixed."""
