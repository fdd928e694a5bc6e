"""News of items, for the rooms above. But for `item_viewed`, all are sent inside the transaction of the change."""

from django.dispatch import Signal

# Before an item is published, or a published one changed. Arguments: item (Item, as it is to be; not saved). Receivers
# return the reasons, a list of str, why a moderator has to look at it first; or nothing.
# Receivers: moderation.receivers.look.
item_submitted = Signal()
# An author begins to write. Arguments: author (User). Receivers return a str, what the author should know before they
# publish; or nothing.
# Receivers: moderation.receivers.tell_beforehand.
writing_began = Signal()
# Items that are held for review are shown to their sender. Arguments: item_ids (list[int]). Receivers return a dict: by
# item a str, why it is held and how long that takes.
# Receivers: moderation.receivers.tell_why.
held_shown = Signal()
# The item is not published but waits for a moderator, for these reasons. Arguments: item (Item, status in review),
# reasons (list[str]).
# Receivers: moderation.receivers.write_case.
item_held = Signal()
# The item became visible, for the first time, again, or to more users: the delivery row commits with it. Arguments:
# item, again (bool).
# Receivers: discover.receivers.note_change, notifications.receivers.tell_of_item,
# timeline.receivers.announce_publication, timeline.receivers.write_delivery.
item_published = Signal()
# An item that was said elsewhere, at an earlier time, came in and stands where it was said. No user is told of it.
# Arguments: item.
# Receivers: discover.receivers.note_change, timeline.receivers.write_past_delivery.
item_imported = Signal()
# A published item says something else, or is shown to others than before. Arguments: item, visibility_before (str).
# Receivers: discover.receivers.note_change, notifications.receivers.tell_of_item, timeline.receivers.announce_edit.
item_edited = Signal()
# An edit gave a published item hashtags that it had not. Arguments: item.
# Receivers: timeline.receivers.write_tag_delivery.
item_tagged = Signal()
# Only its sender sees the item from now on: it was deleted, rejected or held back after it had been published.
# Arguments: item.
# Receivers: discover.receivers.note_change, timeline.receivers.announce_withdrawal.
item_withdrawn = Signal()
# A user liked the item. Arguments: item (Item), user (User).
# Receivers: notifications.receivers.tell_of_like.
item_liked = Signal()
# A reader opened an item: its page, or by its id over the API. Sent by items.viewing when the answer has been sent, and
# a failing receiver is logged and not the reader's trouble. Arguments: reader (User), item (ItemBody, by another user),
# replies (list[ItemBody]: those that the page shows below it, in their order). Receivers:
# discover.receivers.remember_view.
item_viewed = Signal()
# Staged likes, replies, reposts and quotes were added to the counts. Arguments: item_ids (list[int]).
# Receivers: discover.receivers.note_popularity.
counts_folded = Signal()
