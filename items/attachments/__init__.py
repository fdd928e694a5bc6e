"""Pictures and videos of items: attaching and hiding them."""
