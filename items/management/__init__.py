"""Commands of items."""
