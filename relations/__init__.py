"""Follows, blocks and mutes, and the one rule of which user sees which."""
