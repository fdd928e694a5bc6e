"""Commands of the home timeline, one a module."""
