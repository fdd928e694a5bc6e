"""News of relations, sent inside the transaction of the change."""

from django.dispatch import Signal

# A user follows another from now on. Arguments: follower, followee (User).
# Receivers: notifications.receivers.tell_of_follow.
followed = Signal()
