"""Archives of accounts that members bring from other sites: read, bounded, and published at their times.

See docs/decisions.md: Imports point down.
"""
