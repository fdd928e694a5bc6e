"""Statuses, their timelines, polls and media."""
