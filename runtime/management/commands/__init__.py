"""Commands of runtime, one a module."""
