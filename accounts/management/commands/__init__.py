"""Commands of accounts, one a module."""
