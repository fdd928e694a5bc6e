"""The home timeline and lists: windows, fan-out, and the page that merges and verifies."""
