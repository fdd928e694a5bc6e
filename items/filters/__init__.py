"""Filters: phrases that a reader hides or is warned of, how they are found, and their pages."""
