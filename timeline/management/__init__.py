"""Commands of the home timeline."""
