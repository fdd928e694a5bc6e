from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ModerationConfig(AppConfig):
    """The moderation app."""

    name = "moderation"
    verbose_name = _("Moderation")

    def ready(self) -> None:
        """Connect the receivers."""
        from moderation import receivers  # noqa: F401 - connects the receivers
