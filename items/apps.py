from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ItemsConfig(AppConfig):
    """Items, likes, search and profiles."""

    name = "items"
    verbose_name = _("Posts")

    def ready(self) -> None:
        from items import receivers  # noqa: F401 - connects the receivers
