"""Threads: the replies to an item, and muting them."""
