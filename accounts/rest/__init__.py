"""The HTTP API of accounts."""
