"""Commands of mail."""
