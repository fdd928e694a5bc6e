from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MovingConfig(AppConfig):
    """Archives from other sites."""

    name = "community.archives"
    label = "moving"
    verbose_name = _("Moving in")

    def ready(self) -> None:
        from community.archives import receivers  # noqa: F401 - connects the receivers
