from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SeenConfig(AppConfig):
    """The app of plays and filters."""

    name = "seen"
    verbose_name = _("Played history")

    def ready(self) -> None:
        from seen import receivers  # noqa: F401 - connects the receivers
