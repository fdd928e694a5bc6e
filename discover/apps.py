from django.apps import AppConfig


class DiscoverConfig(AppConfig):
    """Recall, exclusions and the recommended feed."""

    name = "discover"

    def ready(self) -> None:
        from discover import receivers  # noqa: F401 - connects the receivers
