"""Commands of the recommended feed."""
