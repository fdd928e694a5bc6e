from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RelationsConfig(AppConfig):
    """Follows, blocks, mutes and lists."""

    name = "relations"
    verbose_name = _("Relations")

    def ready(self) -> None:
        from relations import receivers  # noqa: F401 - connects the receivers
