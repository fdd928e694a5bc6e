"""Users: accounts, signing in, joining, letters, levels, big-V flags, and the site's name and rules."""
