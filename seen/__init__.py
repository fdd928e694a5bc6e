"""Played history, by item id: the filters of months, the ring of merges and the store."""
