"""Commands for the site's operators, one a module."""
