"""Statuses and their timelines."""
