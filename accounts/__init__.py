"""Who exists, who is big-V, who is active."""
