"""The HTTP API that apps of Mastodon call."""
