"""Commands of the played history, one a module."""
