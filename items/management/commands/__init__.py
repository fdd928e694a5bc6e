"""Commands of items, one a module."""
