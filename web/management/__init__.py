"""Commands of web."""
