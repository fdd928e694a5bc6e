"""Tools for the whole site: doctor, backup, restore, upgrade.

See docs/decisions.md: The tools for the whole site have a room above all others.
"""
