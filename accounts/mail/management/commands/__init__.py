"""Commands of mail, one a module."""
