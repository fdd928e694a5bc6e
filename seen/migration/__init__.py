"""The migration of plays from the old Redis into the filters."""
