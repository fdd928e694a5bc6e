"""Link cards: what the first link of a public post leads to."""
