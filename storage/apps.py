"""The Django app of storage."""

from django.apps import AppConfig
from django.core.signals import request_started
from django.db.backends.signals import connection_created


class StorageConfig(AppConfig):
    """The label is the one under which version 0.1.0 applied this package's migrations."""

    name = "storage"
    label = "feedsite"

    def ready(self) -> None:
        """Connect the clean-up of ended database sessions to each request, and traces to each session."""
        from runtime import traces
        from storage.connections import drop_ended_sessions, trace_statements

        request_started.connect(drop_ended_sessions)
        if traces.is_on():
            connection_created.connect(trace_statements)
