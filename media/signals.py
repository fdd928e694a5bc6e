from django.dispatch import Signal

# Description, focus or captions of a medium changed. Sent after the commit, because an action that locks item and
# medium locks the item first. Arguments: medium (MediaFile).
# Receivers: items.receivers.refresh_descriptions, live.receivers.renew_cover.
medium_described = Signal()

# Media that others could see belong to an account that was hidden. Receivers give their files new addresses, each in
# its own transaction: they lock what uses a medium before the medium. They tell nobody, because nobody sees it.
# Arguments: media (list of MediaFile, in use). Receivers: accounts.receivers.rename_faces,
# items.receivers.rename_attachments, live.receivers.rename_covers.
owner_hidden = Signal()

# Pictures have sizes now. Receivers write the new facts where the pictures are shown, and tell nobody. Sent outside a
# transaction. Arguments: media (list of MediaFile, in use). Receivers: accounts.receivers.show_sizes_of_faces,
# items.receivers.show_sizes, live.receivers.show_sizes_of_covers.
sizes_made = Signal()

# A worker is done with a video: it is ready or failed. Sent after that commit, and again if the worker dies before its
# receivers are done. Arguments: media_id (int). Receivers: items.receivers.release_waiting.
video_processed = Signal()

# Media will be kept (rows not saved yet) or used. Sent inside that transaction. Receivers return the ids of rules that
# block them.
# Arguments: media (list of MediaFile), is_face (bool: avatar, banner or cover).
# Receivers: moderation.receivers.check_media.
media_offered = Signal()

# Rules blocked media. Sent after the rollback of the transaction that would have kept or used them.
# Arguments: owner_id (int), rules (list of ids). Receivers: moderation.receivers.count_attempts.
media_blocked = Signal()

# Staff opens a medium by its id. Receivers answer whether they may.
# Arguments: medium (MediaFile), user (User). Receivers: moderation.receivers.may_open.
medium_opened = Signal()
