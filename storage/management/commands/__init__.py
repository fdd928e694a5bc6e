"""Commands of the data ground, one a module."""
