"""Commands for the site's operators."""
