"""Questions of the site to the rooms above."""

from django.dispatch import Signal

# Sent once a process, when clients first ask for the limits of the site. Receivers return a dict of names and numbers.
# Receivers: items.receivers.tell_limits.
limits_asked = Signal()
