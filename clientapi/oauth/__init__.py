"""OAuth: apps, their scopes and tokens, and the page where a user allows one."""
