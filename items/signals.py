"""Signals of items. All but `item_viewed` are sent inside the transaction of the change."""

from django.dispatch import Signal

# Before an item is published, or a published one changed. Arguments: item (Item, as it will be, not saved). Receivers
# return reasons (list of str) for holding it for review, or None.
# Receivers: moderation.receivers.check_item.
item_submitted = Signal()
# An author begins to write. Arguments: author (User). Receivers return what the author should know first (str), or
# None.
# Receivers: moderation.receivers.hold_notice.
writing_began = Signal()
# Held items are shown to their sender. Arguments: item_ids (list[int]). Receivers return a dict: by item id, why it is
# held and how long that takes (str).
# Receivers: moderation.receivers.hold_reasons.
held_shown = Signal()
# An item is held for review. Arguments: item (Item, status in review), reasons (list[str]).
# Receivers: moderation.receivers.write_case.
item_held = Signal()
# An item became visible, for the first time, again, or to more users. The delivery row commits with it. Arguments:
# item, again (bool).
# Receivers: discover.receivers.index_change, notifications.receivers.notify_of_item,
# notifications.receivers.ring_bells, timeline.receivers.announce_publication, timeline.receivers.start_delivery.
item_published = Signal()
# A scheduled post was not published at its time, or is held for review. Arguments: user (User, its sender), item (Item,
# the held one, or None).
# Receivers: notifications.receivers.notify_of_scheduled.
scheduled_ended = Signal()
# An item published elsewhere earlier was imported at its original time. Nobody is notified. Arguments: item.
# Receivers: discover.receivers.index_change, timeline.receivers.start_past_delivery.
item_imported = Signal()
# A published item has other content or another audience. Arguments: item, visibility_before (str).
# Receivers: discover.receivers.index_change, notifications.receivers.notify_of_item, timeline.receivers.announce_edit.
item_edited = Signal()
# An edit gave a published item new hashtags. Arguments: item.
# Receivers: timeline.receivers.write_tag_delivery.
item_tagged = Signal()
# Only its sender sees the item now: it was published, and is deleted, rejected or held. Arguments: item.
# Receivers: discover.receivers.index_change, timeline.receivers.announce_withdrawal.
item_withdrawn = Signal()
# A user liked the item. Arguments: item (Item), user (User).
# Receivers: notifications.receivers.notify_of_like.
item_liked = Signal()
# A reader opened an item on its page or by its id over the API. Sent after the answer. A failing receiver is only
# logged. Arguments: reader (User), item (ItemBody, by another user), replies (list[ItemBody], those shown below it, in
# order).
# Receivers: discover.receivers.remember_view.
item_viewed = Signal()
# A poll has ended. Arguments: item, user_ids (list[int]: its sender and voters, a batch in each signal).
# Receivers: notifications.receivers.notify_of_poll.
poll_ended = Signal()
# Staged changes were added to the counts. Arguments: item_ids (list[int]).
# Receivers: discover.receivers.index_popularity.
counts_folded = Signal()
