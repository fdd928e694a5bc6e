"""Commands of the recommended feed, one a module."""
