"""Hashtags: their pages, the popular ones and their use."""
