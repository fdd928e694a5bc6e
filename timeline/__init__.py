"""The follow timeline: windows, fan-out, and the page that merges and verifies."""
