"""Commands of the HTTP ground."""
