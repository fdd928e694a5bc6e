"""Streams of Mastodon's API: who may listen, and what they hear."""
