"""What readers have seen: impressions of a week and the last views. Ids only; what these stand for others know."""
