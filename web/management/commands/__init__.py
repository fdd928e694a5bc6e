"""Commands of web, one a module."""
