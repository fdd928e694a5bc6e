"""Events of media, for the rooms above."""

from django.dispatch import Signal

# The words or the focus of a medium changed. Sent after that was committed: whoever locks the item that uses it takes
# that lock first. Arguments: medium (MediaFile).
# Receivers: items.receivers.show_described.
medium_described = Signal()
