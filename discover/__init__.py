"""The recommended feed: recall, what is left out of it, and pages that never repeat themselves."""
