"""Private mentions: who gets one, and a reader's conversations."""
