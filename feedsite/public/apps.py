from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class PublicConfig(AppConfig):
    """The front page, Atom feeds, and the sitemap."""

    name = "feedsite.public"
    label = "public"
    verbose_name = _("Public pages")
