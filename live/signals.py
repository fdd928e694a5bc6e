"""News of sessions, sent inside the transaction of the change."""

from django.dispatch import Signal

# A session was made, edited, hidden or shown again, or is in another state. Arguments: session (LiveSession, as it is
# now), before (State or None: its state before; None for one that is new), was_hidden (bool).
# Receivers: live.receivers.announce_change.
session_changed = Signal()
# A session became a replay that others may see: it ended, or (again) a hidden replay is shown again, which windows may
# have forgotten. Arguments: session (LiveSession), again (bool).
# Receivers: live.receivers.write_delivery.
replay_made = Signal()
