"""Commands of storage."""
