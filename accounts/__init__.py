"""Users: accounts, big-V flags, levels, sessions and tokens."""
