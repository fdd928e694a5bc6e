"""The web application with four seconds for slow senders."""

from importlib import import_module

from runtime.slow_senders import slow_senders

slow_senders.seconds = 4.0

_site = import_module("feedsite.wsgi")
application, refused = _site.application, _site.refused
