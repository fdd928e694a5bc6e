"""Open connections: decides who hears of which event, and writes it to them."""
