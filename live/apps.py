from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class LiveConfig(AppConfig):
    """Live sessions, their feed and replays."""

    name = "live"
    verbose_name = _("Live")

    def ready(self) -> None:
        """Connect receivers, and give notifications and moderation their functions."""
        from accounts import review as reviewed
        from live import receivers, review  # noqa: F401 - connects the receivers
        from live.hydrate import cards, shown_in_notifications
        from notifications.sessions import sessions

        sessions.shown, sessions.cards = shown_in_notifications, cards
        reviewed.sessions.find, reviewed.sessions.seen = review.find, review.find_visible
        reviewed.sessions.lock, reviewed.sessions.judge = review.lock, review.judge
        reviewed.sessions.uncover, reviewed.sessions.end = review.uncover, review.end
