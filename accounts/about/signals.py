"""Signals of the site, for packages above."""

from django.dispatch import Signal

# Sent once per process, when a client first asks for limits. Receivers return a dict of names and numbers.
# Receivers: items.receivers.tell_limits.
limits_asked = Signal()
