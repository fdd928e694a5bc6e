"""Filters: phrases that a reader hides or is warned of, and how they are found."""
