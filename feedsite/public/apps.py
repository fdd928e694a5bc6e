"""The public side as a Django app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class PublicConfig(AppConfig):
    """The app of the front page, feeds for readers of news, and what search engines ask for."""

    name = "feedsite.public"
    label = "public"
    verbose_name = _("Public side")
