"""Accounts, relations, lists and reports."""
