"""Template tags and filters of every page."""
