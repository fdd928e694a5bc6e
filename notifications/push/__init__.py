"""Push messages: who takes them, what they say, and how they are sent."""
