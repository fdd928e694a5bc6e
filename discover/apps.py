"""The recommended feed as a Django app."""

from django.apps import AppConfig


class DiscoverConfig(AppConfig):
    """The app of recall, exclusions and the recommended feed."""

    name = "discover"

    def ready(self) -> None:
        """Connect the receivers."""
        from discover import receivers  # noqa: F401 - connects the receivers
