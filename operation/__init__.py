"""Tools for the whole site: doctor, backup, restore, upgrade.

See docs/decisions.md: Imports point down.
"""
