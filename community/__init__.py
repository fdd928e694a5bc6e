"""Demo and imported communities, and archives of accounts elsewhere.

See docs/decisions.md: Imports point down.
"""
