"""Likes, bookmarks and reposts: the items of a reader, and the people of an item."""
