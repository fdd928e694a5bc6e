"""Posts, replies and reposts: publishing, who may see them, profiles, threads and search."""
