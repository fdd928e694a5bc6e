"""Scheduled posts: written now, published later."""
