"""The pages of items: views, forms, cards, texts with links, previews, and pages kept for strangers."""
