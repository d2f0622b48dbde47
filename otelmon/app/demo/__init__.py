"""The demo: small agents that do right and wrong things, and a monitor that tells them apart."""
