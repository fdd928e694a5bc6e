"""What readers have seen: plays, by id only: filters, ring and store."""
