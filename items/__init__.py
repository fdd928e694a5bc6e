"""What was said: the soft-deletable message table."""
