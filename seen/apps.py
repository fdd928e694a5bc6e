from django.apps import AppConfig


class SeenConfig(AppConfig):
    name = "seen"

    def ready(self) -> None:
        from seen import receivers  # noqa: F401 - connects the receivers
