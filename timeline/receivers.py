"""Receivers of the news from below."""
