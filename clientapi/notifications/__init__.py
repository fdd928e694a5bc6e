"""Notifications, one by one and in groups, and push subscriptions."""
