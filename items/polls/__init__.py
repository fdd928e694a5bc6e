"""Polls: options, votes, results, and the acts on a page."""
