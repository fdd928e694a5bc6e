"""Commands of storage, one a module."""
