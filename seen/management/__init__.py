"""Commands of the played history."""
