"""Tools for the whole site: doctor, backup, restore, upgrade."""
