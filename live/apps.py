from django.apps import AppConfig


class LiveConfig(AppConfig):
    name = "live"

    def ready(self) -> None:
        from live import stream  # noqa: F401 - tells the stream process who hears of sessions
