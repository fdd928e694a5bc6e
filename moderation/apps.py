from django.apps import AppConfig


class ModerationConfig(AppConfig):
    name = "moderation"

    def ready(self) -> None:
        from moderation import receivers  # noqa: F401 - connects the receivers
