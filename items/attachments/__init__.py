"""Pictures and videos of items: attaching, hiding and showing them."""
