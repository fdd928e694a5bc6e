"""News of items, for the rooms above."""

from django.dispatch import Signal

# Sent inside the transaction that makes the item visible (for the first time, or again): the delivery row commits
# with it. Arguments: item (Item), again (bool).
item_published = Signal()
