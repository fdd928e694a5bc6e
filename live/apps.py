from django.apps import AppConfig


class LiveConfig(AppConfig):
    name = "live"

    def ready(self) -> None:
        from live import (  # noqa: F401 - connects the receivers, and tells the stream process who hears of sessions
            receivers,
            stream,
        )
        from live.hydrate import cards, shown
        from notifications.sessions import sessions

        sessions.shown, sessions.cards = shown("n.session_id"), cards
