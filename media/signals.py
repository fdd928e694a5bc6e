"""Events of media, for the rooms above."""

from django.dispatch import Signal

# The words, the focus or the captions of a medium changed. Sent after that was committed: a verb that locks the item
# with the medium takes the item's lock first. Arguments: medium (MediaFile).
# Receivers: items.receivers.show_described, live.receivers.renew_cover.
medium_described = Signal()

# Media are to be kept (their rows are not saved yet) or used. Sent inside the transaction that would do it; a receiver
# answers the ids of the rules that block them. Arguments: media (list of MediaFile), is_face (bool: as an avatar, a
# banner or a cover). Receivers: moderation.receivers.look_at_media.
media_offered = Signal()

# Media were blocked by rules. Sent after the transaction that would have kept or used them was rolled back.
# Arguments: owner_id (int), rules (list of ids). Receivers: moderation.receivers.count_attempts.
media_blocked = Signal()
