"""Archives that members bring from other sites.

See docs/decisions.md: Imports point down.
"""
