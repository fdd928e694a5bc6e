"""Link cards: what the first link of a public post leads to, read once a day for the whole site."""
