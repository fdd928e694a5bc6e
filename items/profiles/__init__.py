"""Profiles: the items of one sender, and the pinned ones."""
