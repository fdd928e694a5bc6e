"""Made-up and imported communities: the commands `demo` and `load`."""
