"""Demo and imported communities, and archives of accounts elsewhere."""
