"""Pure scoring of agent runs. Depends on nothing else of ours."""
