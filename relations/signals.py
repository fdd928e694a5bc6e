"""News of relations, for the rooms above. All are sent inside the transaction of the change."""

from django.dispatch import Signal

# Arguments: follower, followee (User).
followed = Signal()
unfollowed = Signal()
# Arguments: blocker, blocked (User).
blocked = Signal()
