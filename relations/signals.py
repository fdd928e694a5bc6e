"""News of relations, sent inside the transaction of the change. Arguments of each: follower, followee (User)."""

from django.dispatch import Signal

# A user follows another from now on.
# Receivers: notifications.receivers.tell_of_follow.
followed = Signal()

# A user asks to follow another, whose account is locked.
# Receivers: notifications.receivers.tell_of_request.
follow_requested = Signal()

# A user's request was accepted: they follow the other from now on.
# Receivers: notifications.receivers.tell_of_acceptance.
follow_accepted = Signal()
