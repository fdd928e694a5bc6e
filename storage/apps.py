from django.apps import AppConfig
from django.core.signals import request_started


class StorageConfig(AppConfig):
    """The app of connections, keys and windows. Keeps the label of version 0.1.0, for applied migrations."""

    name = "storage"
    label = "feedsite"

    def ready(self) -> None:
        """Drop ended database sessions at each request."""
        from storage.connections import drop_ended_sessions

        request_started.connect(drop_ended_sessions)
