"""Tools that look at the whole site: doctor, backup and restore, gauges.

See docs/decisions.md: The tools for the whole site have a room above all others.
"""
