"""The recommended feed: candidates, what is left out, and pages that never repeat an item."""
