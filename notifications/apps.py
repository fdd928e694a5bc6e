from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    """Notifications."""

    name = "notifications"

    def ready(self) -> None:
        """Connect the receivers."""
        from notifications import receivers  # noqa: F401 - connects the receivers
