"""Commands of the process ground, one a module."""
