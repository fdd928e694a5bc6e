"""The HTTP API of items."""
