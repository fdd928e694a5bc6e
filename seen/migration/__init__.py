"""The move of plays from the old Redis into the filters."""
