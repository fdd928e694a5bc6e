"""Commands of the data ground."""
