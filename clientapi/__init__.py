"""Mastodon's client API, served by the site's own actions and reads: its words end at this package's door."""
