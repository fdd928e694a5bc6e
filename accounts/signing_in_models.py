"""Apps that act for users: django-oauth-toolkit's applications with additions.

Apps register themselves (clientapi). The built-in app (`OWN_APP`) holds the API tokens for name and password.

See docs/decisions.md: One table holds all tokens.
"""

from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _
from oauth2_provider.models import AbstractApplication, AccessToken

WEBSITE_LENGTH = 2_000
SCOPES_LENGTH = 1_000
FORBIDDEN_SCHEMES = frozenset(
    {
        "about",
        "android-app",
        "blob",
        "chrome",
        "chrome-extension",
        "content",
        "data",
        "feed",
        "file",
        "filesystem",
        "ftp",
        "intent",
        "jar",
        "javascript",
        "livescript",
        "mailto",
        "mhtml",
        "moz-extension",
        "ms-msdt",
        "resource",
        "search-ms",
        "sms",
        "tel",
        "vbscript",
        "view-source",
        "ws",
        "wss",
    }
)
"""A browser or system would run, read or send these, or let them name any program, instead of opening the app's."""
OWN_APP = 0
"""The built-in app's id. PostgreSQL numbers others from 1."""


class ClientAppManager(models.Manager["ClientApp"]):
    """Finds apps."""

    def get_by_natural_key(self, client_id: str) -> "ClientApp":
        """The app with this client id, for dumps."""
        return self.get(client_id=client_id)

    def own(self) -> "ClientApp":
        """The built-in app. Without secret and address, no client can use it."""
        fields = {
            "client_id": "api",
            "name": "API",
            "client_type": ClientApp.CLIENT_CONFIDENTIAL,
            "authorization_grant_type": ClientApp.GRANT_AUTHORIZATION_CODE,
            "client_secret": "",
            "hash_client_secret": False,
            "scopes": "",
        }
        return self.get_or_create(pk=OWN_APP, defaults=fields)[0]

    def registered(self) -> models.QuerySet["ClientApp"]:
        return self.exclude(pk=OWN_APP)


class ClientApp(AbstractApplication):  # type: ignore[misc]  # without types
    """An app. `scopes`: what it may ask for."""

    website = models.CharField(_("website"), max_length=WEBSITE_LENGTH, blank=True, default="", db_default="")
    scopes = models.CharField(_("scopes"), max_length=SCOPES_LENGTH, default="read", db_default="read")

    objects: ClassVar[ClientAppManager] = ClientAppManager()

    class Meta:
        verbose_name = _("app")
        verbose_name_plural = _("apps")
        default_permissions = ("view", "delete")
        indexes = [models.Index(fields=["created"], name="client_app_age")]

    def natural_key(self) -> tuple[str]:
        """An app's key in dumps."""
        return (self.client_id,)

    def is_usable(self, request: Any) -> bool:
        """Whether it may use OAuth. The built-in app may not."""
        return bool(self.pk != OWN_APP)

    def get_allowed_schemes(self) -> set[str]:
        """Schemes of its redirect addresses, checked by `clientapi.oauth.actions`."""
        return {uri.partition(":")[0].lower() for uri in self.redirect_uris.split()} - FORBIDDEN_SCHEMES

    def redirect_uri_allowed(self, uri: str) -> bool:
        """Whether the app may redirect to this address. False for an invalid one, instead of an exception."""
        if uri.partition(":")[0].lower() in FORBIDDEN_SCHEMES:  # registered by an earlier version
            return False
        try:
            return bool(super().redirect_uri_allowed(uri))
        except ValueError:
            return False

    def allows_grant_type(self, *grant_types: Any) -> bool:
        """Whether an app may use one of these grants: a user's code, or the app's own name for public data."""
        return bool({self.GRANT_AUTHORIZATION_CODE, self.GRANT_CLIENT_CREDENTIALS} & set(grant_types))


class AppToken(AccessToken):  # type: ignore[misc]  # without types
    """A token, for the admin."""

    class Meta:
        proxy = True
        verbose_name = _("token")
        verbose_name_plural = _("tokens")
        default_permissions = ("view", "delete")

    def __str__(self) -> str:
        return f"#{self.pk}"
