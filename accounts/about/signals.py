from django.dispatch import Signal

# Sent once per process. Receivers return a dict of names and numbers.
# Receivers: items.receivers.item_limits.
limits_asked = Signal()
