"""Notifications as a Django app."""

from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    """The app of what users are told."""

    name = "notifications"

    def ready(self) -> None:
        """Connect the receivers."""
        from notifications import receivers  # noqa: F401 - connects the receivers
