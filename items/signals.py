"""News of items, for the rooms above. But for `item_viewed`, all are sent inside the transaction of the change."""

from django.dispatch import Signal

# Before an item is published, or a published one changed. Arguments: item (Item, as it is to be; not saved). Receivers
# return the reasons, a list of str, why a moderator has to look at it first; or nothing.
item_submitted = Signal()
# The item is not published but waits for a moderator, for these reasons. Arguments: item (Item, status in review),
# reasons (list[str]).
item_held = Signal()
# The item became visible, for the first time or again: the delivery row commits with it. Arguments: item, again (bool).
item_published = Signal()
# A published item says something else, or is shown to others than before. Arguments: item, visibility_before (str).
item_edited = Signal()
# Only its sender sees the item from now on: it was deleted, rejected or held back after it had been published.
# Arguments: item.
item_withdrawn = Signal()
# Arguments: item (Item), user (User: who likes it, or does not any more).
item_liked = Signal()
item_unliked = Signal()
# Somebody opened an item: its page, or by its id over the API. Sent by items.viewing when the answer has been sent,
# and what a receiver fails at is logged and not the reader's trouble. Arguments: reader (User), item (ItemBody, by
# somebody else), replies (list[ItemBody]: those that the page shows below it, in their order).
item_viewed = Signal()
# Staged likes, replies and reposts were added to the counts. Arguments: item_ids (list[int]).
counts_folded = Signal()
