"""News of users, for the rooms above."""

from django.dispatch import Signal

# Sent inside the transaction that makes `user` (User) big-V, or finds that they are: a demotion that is under way is
# taken back then. The receiver that does so (timeline) returns whether there was one, others return None.
# Receivers: timeline.receivers.begin_outbox, timeline.receivers.cancel_backfill.
big_v_made = Signal()

# Sent inside the transaction that asks to demote `user` (User). The flag stands until the receiver (timeline) has
# filled the followers' inboxes and calls levels.big_v.complete_demotion. Receivers return whether they began a job.
# Receivers: timeline.receivers.start_backfill.
big_v_demotion_requested = Signal()

# Sent after the commit that raised levels to the top. `user_ids` (list[int]).
# Receivers: timeline.receivers.deepen_inboxes.
levels_raised = Signal()

# Sent after the commit that lowered levels. `user_ids_by_level` (dict[int, list[int]]): by new level.
# Receivers: timeline.receivers.shorten_inboxes.
levels_lowered = Signal()

# Sent by a worker, again and again, while something of the deleted `user` (User) is left. Every receiver takes away at
# most about `limit` (int) rows of what it keeps of them, in a transaction of its own, and returns how many it took; 0
# when nothing is left. It may be called twice at once.
# Receivers: discover.receivers.forget_user, items.receivers.purge_items, live.receivers.purge_sessions,
# moderation.receivers.forget_reporter, community.archives.receivers.forget_archives,
# notifications.receivers.forget_user, relations.receivers.purge_relations,
# seen.receivers.forget_plays.
account_purged = Signal()

# Sent when `reader` (User) asks for all their data. Receivers return a list of accounts.export.ExportFile.
# Receivers: discover.receivers.export_history, items.receivers.export_items, live.receivers.export_sessions,
# moderation.receivers.export_reports, community.archives.receivers.export_archives,
# notifications.receivers.export_choices, relations.receivers.export_relations,
# seen.receivers.export_plays.
export_requested = Signal()

# Before a text of a member that is no item is saved: a live session's, a profile's, a name. Arguments: submission
# (accounts.review.Submission). Receivers (moderation) return the reasons, a list of str, why a moderator has to look at
# it first; or nothing.
# Receivers: moderation.receivers.look_at_text.
text_submitted = Signal()
# A live session waits for a moderator, and only its host sees it. Sent inside the transaction that holds it, with its
# host's row locked. Arguments: session_id (int), author (User), text (str), reasons (list[str]).
# Receivers: moderation.receivers.write_session_case.
session_held = Signal()
