"""Programs that act for users: the table of django-oauth-toolkit's applications, with what it lacks.

Tokens and codes are django-oauth-toolkit's own tables. A token is kept as its SHA-256, and so is an application's
secret. An application registers itself (clientapi), and belongs to no user. One application is built in: its tokens are
the API tokens that users get for a name and a password (`OWN_APP`).

See docs/decisions.md: One table holds all tokens.
"""

from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _
from oauth2_provider.models import AbstractApplication, AccessToken

WEBSITE_LENGTH = 2_000
SCOPES_LENGTH = 1_000
FORBIDDEN_SCHEMES = frozenset({"javascript", "data", "vbscript", "blob", "file", "about", "filesystem", "view-source"})
"""Schemes of addresses that a browser would run or read, instead of opening a program."""
OWN_APP = 0
"""The id of the built-in app. PostgreSQL numbers the others from 1."""


class ClientAppManager(models.Manager["ClientApp"]):
    """Finds apps by the name that dumps have."""

    def get_by_natural_key(self, client_id: str) -> "ClientApp":
        """The app of this client id."""
        return self.get(client_id=client_id)

    def own(self) -> "ClientApp":
        """The built-in app. The first token that needs it makes it, also after its table was emptied. It has no secret
        and no address, so no program can ask for a token in its name.
        """
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
        """The apps that registered themselves."""
        return self.exclude(pk=OWN_APP)


class ClientApp(AbstractApplication):  # type: ignore[misc]  # without types
    """A program. `scopes` are those that it may ask users for, separated by spaces."""

    website = models.CharField(_("website"), max_length=WEBSITE_LENGTH, blank=True, default="", db_default="")
    scopes = models.CharField(_("scopes"), max_length=SCOPES_LENGTH, default="read", db_default="read")

    objects: ClassVar[ClientAppManager] = ClientAppManager()

    class Meta:
        verbose_name = _("app")
        verbose_name_plural = _("apps")
        default_permissions = ("view", "delete")
        indexes = [models.Index(fields=["created"], name="client_app_age")]

    def natural_key(self) -> tuple[str]:
        """The name by which dumps know an app."""
        return (self.client_id,)

    def is_usable(self, request: Any) -> bool:
        """Whether the app may ask for tokens by OAuth. The built-in app may not."""
        return bool(self.pk != OWN_APP)

    def get_allowed_schemes(self) -> set[str]:
        """The schemes of its own addresses, which `clientapi.actions` checked: programs of phones have their own."""
        return {uri.partition(":")[0].lower() for uri in self.redirect_uris.split()} - FORBIDDEN_SCHEMES

    def redirect_uri_allowed(self, uri: str) -> bool:
        """Whether an address is one of its own. False for what is no address, of which django-oauth-toolkit raises."""
        try:
            return bool(super().redirect_uri_allowed(uri))
        except ValueError:
            return False

    def allows_grant_type(self, *grant_types: Any) -> bool:
        """Whether it may get tokens so: by a user's code, or in no user's name for what all may read."""
        return bool({self.GRANT_AUTHORIZATION_CODE, self.GRANT_CLIENT_CREDENTIALS} & set(grant_types))


class AppToken(AccessToken):  # type: ignore[misc]  # without types
    """A token of an app or of the API, as the admin shows it."""

    class Meta:
        proxy = True
        verbose_name = _("token")
        verbose_name_plural = _("tokens")
        default_permissions = ("view", "delete")

    def __str__(self) -> str:
        return f"#{self.pk}"
