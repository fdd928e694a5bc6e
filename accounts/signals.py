"""News of users, for the rooms above."""

from django.dispatch import Signal

# Sent inside the transaction that makes `user` (User) big-V, or takes back a demotion that was under way. Receivers
# (timeline) return whether there was one.
big_v_made = Signal()

# Sent inside the transaction that asks to demote `user` (User). The flag stands until the receiver (timeline) has
# filled the followers' inboxes and calls accounts.big_v.complete_demotion. Receivers return whether they began a job.
big_v_demotion_requested = Signal()

# Sent after the commit that raised levels to the top. `user_ids` (list[int]).
levels_raised = Signal()

# Sent after the commit that lowered levels. `user_ids_by_level` (dict[int, list[int]]): by new level.
levels_lowered = Signal()

# Sent inside the transaction in which `user` (User) is deleted: signs in no more, and is seen nowhere from then on.
account_deleted = Signal()

# Sent by a worker, again and again, while something of the deleted `user` (User) is left. Every receiver takes away at
# most about `limit` (int) rows of what it keeps of them, in a transaction of its own, and returns how many it took; 0
# when nothing is left. It may be called twice at once.
account_purged = Signal()

# Sent when `reader` (User) asks for all their data. Receivers return a list of accounts.export.ExportFile.
export_requested = Signal()

# Before a text of a member that is no item is saved: a live session's, a profile's, a name. Arguments: submission
# (accounts.review.Submission). Receivers (moderation) return the reasons, a list of str, why a moderator has to look at
# it first; or nothing.
text_submitted = Signal()
# A live session waits for a moderator, and only its host sees it. Sent inside the transaction that holds it, with
# its host's row locked. Arguments: session_id (int), author (User), text (str), reasons (list[str]).
session_held = Signal()
