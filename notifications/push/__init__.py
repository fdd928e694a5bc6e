"""Push messages: who takes them, what they say, and how they are sent (RFC 8030, 8291 and 8292)."""
