"""Items on pages: cards, texts with links, previews, and pages kept for strangers."""
