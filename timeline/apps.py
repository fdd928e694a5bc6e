from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TimelineConfig(AppConfig):
    name = "timeline"
    verbose_name = _("Timeline")

    def ready(self) -> None:
        from timeline import receivers  # noqa: F401 - connects the receivers
