"""Search: words, queries, the index, hits, users by name, completions, and its pages."""
