from django.apps import AppConfig
from django.core.signals import request_started


class FeedsiteConfig(AppConfig):
    name = "feedsite"

    def ready(self) -> None:
        from feedsite.connections import drop_ended_sessions

        request_started.connect(drop_ended_sessions)
