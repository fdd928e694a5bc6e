"""The data ground as a Django app."""

from django.apps import AppConfig
from django.core.signals import request_started


class StorageConfig(AppConfig):
    """The label is the one under which version 0.1.0 applied this package's migrations."""

    name = "storage"
    label = "feedsite"

    def ready(self) -> None:
        """Connect the clean-up of ended database sessions to the beginning of each request."""
        from storage.connections import drop_ended_sessions

        request_started.connect(drop_ended_sessions)
