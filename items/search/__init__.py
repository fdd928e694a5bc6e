"""Search: words, queries, the index, hits, and users by name."""
