"""Posts, replies and reposts: the soft-deletable message table, its visibility, profiles and search."""
