from django.apps import AppConfig


class DiscoverConfig(AppConfig):
    name = "discover"

    def ready(self) -> None:
        from discover import receivers  # noqa: F401 - connects the receivers
