"""The site's settings, with strangers' hosts on this machine."""

from feedsite.settings import *  # noqa: F403

OUTBOUND_TO_LOOPBACK = True
