"""Authentication by an app's token: `Authorization: Bearer …`, or `access_token` in the query of a GET.

A token ends when it is revoked (accounts.actions), with its user's password, "log out everywhere", suspension or
deletion, and after `APP_TOKEN_DAYS` without use (without a user: `OF_APP_LIFE`).
"""

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from accounts.about.site import current
from accounts.models import User
from accounts.signing_in.tokens import NOTED, ValidToken, find_token
from accounts.signing_in_models import OWN_APP
from clientapi.oauth import scopes
from storage.connections import LAZILY, fetch
from web import rates
from web.credentials import BoundedCredential, ScopedView

OF_APP_LIFE = timedelta(days=2)
"""How long a token without a user lives after its last use."""
READING = frozenset({"GET", "HEAD"})
OUTSIDE = "This action is outside the authorized scopes"
"""Mastodon's message, which its clients know."""
NOTE = f"""
    UPDATE oauth2_provider_accesstoken SET updated = now(), expires = now() + %(life)s
    WHERE id = %(token)s AND updated < now() - %(noted)s AND {LAZILY} RETURNING id
"""


class BearerToken(BoundedCredential):
    """The app and scopes of a token."""

    def __init__(self, token: ValidToken) -> None:
        self.token_id = token.token_id
        self.app_id = token.app_id
        self.scopes = frozenset(scopes.parsed(token.scopes))

    def check(self, request: Request, view: ScopedView) -> None:
        """Raise PermissionDenied if the token lacks the scope, or make the caller a stranger where strangers may
        read.
        """
        if request.method == "OPTIONS":  # anyone may ask for the options
            return
        is_reading = request.method in READING
        if scopes.grants_access(self.scopes, view.scopes, is_reading=is_reading):
            return
        is_for_members = getattr(request._request, "is_for_members", False)
        if not is_reading or is_for_members or not view.opens_to_strangers:
            raise PermissionDenied(OUTSIDE)
        request.user = AnonymousUser()


class BearerAuthentication(BaseAuthentication, rates.ClaimingAuthenticator):
    """Authenticates by the header's token. The user is anonymous if the token has none."""

    def token_of(self, request: HttpRequest) -> str | None:
        """The token in the header, if any."""
        kind, _separator, token = request.META.get("HTTP_AUTHORIZATION", "").strip().partition(" ")
        return token.strip() if kind.lower() == "bearer" else None

    def claim(self, request: HttpRequest) -> tuple[str, int | None]:
        """The unverified token, for counting (`rates.ClaimingAuthenticator`)."""
        token = self.token_of(request)
        return (rates.token_credential(f"bearer {token}") if token is not None else ""), None

    def authenticate(self, request: Request) -> tuple[User | AnonymousUser, BearerToken] | None:
        """The user and the token. None without a token. Raises AuthenticationFailed."""
        text = self.token_of(request._request)
        if text is None:
            return None
        token = find_token(text)
        if token is None or token.app_id == OWN_APP:
            raise AuthenticationFailed("The access token is invalid")
        if token.is_due and current().is_writable:
            life = OF_APP_LIFE if token.user is None else timedelta(days=settings.APP_TOKEN_DAYS)
            fetch(NOTE, {"token": token.token_id, "noted": NOTED, "life": life})
        return token.user or AnonymousUser(), BearerToken(token)

    def authenticate_header(self, request: Request) -> str:
        """The WWW-Authenticate header of a 401."""
        return 'Bearer realm="feedsite"'


class AppAuthentication(BearerAuthentication):
    """Authenticates calls of Mastodon's addresses."""

    def token_of(self, request: HttpRequest) -> str | None:
        """The token in the header, or for reading in the query, if any."""
        in_query = request.GET.get("access_token") or None if request.method in READING else None
        return super().token_of(request) or in_query


class StreamAuthentication(AppAuthentication):
    """Authenticates streams. Browsers cannot set headers here: the token may be in the WebSocket protocol."""

    def token_of(self, request: HttpRequest) -> str | None:
        """The token in header, query or WebSocket protocol, if any."""
        protocols = request.META.get("HTTP_SEC_WEBSOCKET_PROTOCOL", "")
        return super().token_of(request) or protocols.partition(",")[0].strip() or None
