"""What strangers and search engines see: the front page, Atom feeds, the sitemap."""
