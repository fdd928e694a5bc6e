from django.dispatch import Signal

# Sent inside the transaction that makes `user` (User) big-V or finds that they are. A running demotion is then
# cancelled. That receiver (timeline) returns whether there was one, others None.
# Receivers: timeline.receivers.begin_outbox, timeline.receivers.cancel_backfill.
big_v_made = Signal()

# Sent inside the transaction that asks to demote `user` (User). The flag stays until the receiver (timeline) has filled
# followers' inboxes and calls levels.big_v.complete_demotion. Receivers return whether they began a job.
# Receivers: timeline.receivers.start_backfill.
big_v_demotion_requested = Signal()

# Sent after the commit that raised levels to the top. `user_ids` (list[int]).
# Receivers: timeline.receivers.deepen_inboxes.
levels_raised = Signal()

# Sent after the commit that lowered levels. `user_ids_by_level` (dict[int, list[int]]), by new level.
# Receivers: timeline.receivers.shorten_inboxes.
levels_lowered = Signal()

# Sent after the commit that deleted an account. `user_id` (int).
# Receivers: accounts.receivers.begin_purge.
account_deleted = Signal()

# Sent inside the transaction that ends all sessions of `user` (User), and all tokens but at most one.
# Receivers: notifications.receivers.end_pushes.
sessions_ended = Signal()

# Sent by a worker repeatedly until nothing of the deleted `user` (User) is left. Each receiver removes about `limit`
# (int) rows in its own transaction and returns how many, 0 at the end. Two calls may overlap.
# Receivers: discover.receivers.forget_user, items.receivers.purge_items, live.receivers.purge_sessions,
# moderation.receivers.forget_reporter, community.archives.receivers.forget_archives,
# notifications.receivers.forget_user, relations.receivers.purge_relations, seen.receivers.forget_plays,
# timeline.receivers.forget_position.
account_purged = Signal()

# Sent inside a transaction until all is recounted of the user `user_id` (int), who was hidden or shown. Each receiver
# takes up to `limit` (int) rows of each kind after `places` (dict[str, int]) out of others' counts if `is_hidden`
# (bool), else puts them back. It moves `places` and returns whether it found rows. Doing it twice is harmless.
# Receivers: items.receivers.recount_items, relations.receivers.recount_follows.
account_recounted = Signal()

# Sent when `reader` (User) asks for all their data. Receivers return a list of accounts.export.ExportFile.
# Receivers: discover.receivers.export_history, items.receivers.export_items, live.receivers.export_sessions,
# moderation.receivers.export_reports, community.archives.receivers.export_archives,
# notifications.receivers.export_choices, relations.receivers.export_relations,
# seen.receivers.export_plays, timeline.receivers.export_position.
export_requested = Signal()

# Sent before a member's text that is not an item is saved: a live session, profile or name. Arguments: submission
# (accounts.review.Submission). Receivers return reasons for a moderator to see it first (list[str]), or nothing.
# Receivers: moderation.receivers.check_text.
text_submitted = Signal()
# A live session is held for a moderator, and only its host sees it. Sent inside that transaction, with the host's row
# locked. Arguments: session_id (int), author (User), text (str), reasons (list[str]).
# Receivers: moderation.receivers.write_session_case.
session_held = Signal()

# A user who proved who they are is inactive. Arguments: user (User). Receivers end a suspension whose time is over, and
# return the one that stands (accounts.signing_in.suspension.Suspension), or nothing.
# Receivers: moderation.receivers.suspension_of.
suspension_asked = Signal()
