"""The two buses, held to one contract."""
