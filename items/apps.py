from django.apps import AppConfig


class ItemsConfig(AppConfig):
    name = "items"

    def ready(self) -> None:
        from items import receivers  # noqa: F401 - connects the receivers
