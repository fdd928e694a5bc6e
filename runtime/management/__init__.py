"""Commands of the process ground."""
