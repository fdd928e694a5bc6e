"""Template tags of items."""
