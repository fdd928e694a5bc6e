"""Made-up and imported communities: the commands `demo` and `load`.

See docs/decisions.md: Made-up and imported people have a room above all feeds.
"""
