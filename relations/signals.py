"""Signals of relations, sent inside the transaction. Arguments of each: follower, followee (User)."""

from django.dispatch import Signal

# A user follows another.
# Receivers: notifications.receivers.notify_of_follow.
followed = Signal()

# A user asks to follow one with a locked account.
# Receivers: notifications.receivers.notify_of_request.
follow_requested = Signal()

# A follow request was accepted.
# Receivers: notifications.receivers.notify_of_acceptance.
follow_accepted = Signal()
