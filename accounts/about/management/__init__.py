"""Commands of the site's description of itself."""
