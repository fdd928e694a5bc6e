"""Notifications, one by one and in groups."""
