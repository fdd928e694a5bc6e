"""The Django app of storage."""

from django.apps import AppConfig
from django.core.signals import request_started
from django.db.backends.signals import connection_created


class StorageConfig(AppConfig):
    """Keeps the label of version 0.1.0, for applied migrations."""

    name = "storage"
    label = "feedsite"

    def ready(self) -> None:
        """Drop ended database sessions at each request, and trace each session."""
        from runtime import traces
        from storage.connections import drop_ended_sessions, trace_statements

        request_started.connect(drop_ended_sessions)
        if traces.is_on():
            connection_created.connect(trace_statements)
