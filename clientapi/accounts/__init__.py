"""Accounts and relations."""
