"""Demo and imported communities, and archives of accounts elsewhere.

See docs/decisions.md: Made-up and imported people have a room above all feeds.
"""
