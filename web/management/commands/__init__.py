"""Commands of the HTTP ground, one a module."""
