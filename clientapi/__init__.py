"""Mastodon's client API on top of the site's own actions and reads."""
