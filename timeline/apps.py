from django.apps import AppConfig


class TimelineConfig(AppConfig):
    name = "timeline"

    def ready(self) -> None:
        from timeline import receivers  # noqa: F401 - connects the receivers
