"""Follows, blocks, mutes and lists, and the rule of which user sees which."""
