"""Open connections: decides which reader hears of which event, and writes the events to them."""
