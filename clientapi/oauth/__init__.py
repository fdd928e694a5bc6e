"""OAuth: apps, their scopes and tokens."""
