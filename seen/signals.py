from django.dispatch import Signal

# Half of a user's room for waiting plays is filled. `user_id` (int).
# Receivers: seen.receivers.merge_early.
room_filled = Signal()
