from django.apps import AppConfig


class RelationsConfig(AppConfig):
    name = "relations"

    def ready(self) -> None:
        from relations import receivers  # noqa: F401 - connects the receivers
