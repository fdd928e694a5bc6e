"""Template tags of live sessions."""
