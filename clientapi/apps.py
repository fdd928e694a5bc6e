from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ClientApiConfig(AppConfig):
    """Mastodon's client API."""

    name = "clientapi"
    verbose_name = _("Client API")
