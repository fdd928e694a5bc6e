"""The caller of a request by `Authorization: Bearer …`: the token of an app, by one prepared query.

A token ends with its user's password, their log-out everywhere, their suspension and their deletion (accounts.tokens),
when it is revoked, and when it was not used for `APP_TOKEN_DAYS`. Its use is written at most once in `NOTED`.
"""

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from accounts.models import User
from accounts.rows import user_columns, user_or_none
from clientapi import scopes
from storage.connections import LAZILY, fetch
from web import rates
from web.credentials import Bounded

NOTED = timedelta(hours=1)
"""The use of a token is written at most once in so long."""
READING = frozenset({"GET", "HEAD"})
OUTSIDE = "This action is outside the authorized scopes"
"""The words of Mastodon, which its clients know."""
NOTE = f"""
    UPDATE oauth2_provider_accesstoken SET updated = now(), expires = now() + %(life)s
    WHERE id = %(token)s AND updated < now() - %(noted)s AND {LAZILY} RETURNING id
"""  # noqa: S608 (a constant)


@cache
def _by_digest() -> str:
    return f"""
        SELECT t.id, t.application_id, t.scope, t.updated < now() - %(noted)s, {user_columns("u")}
        FROM oauth2_provider_accesstoken t LEFT JOIN accounts_user u ON u.id = t.user_id
        WHERE t.token_checksum = %(digest)s AND t.expires > now() AND (t.user_id IS NULL OR u.is_active)
    """  # noqa: S608 (columns of our own model)


class _Row(NamedTuple):
    """A row of `_by_digest`."""

    token_id: int
    app_id: int
    scopes: str
    is_due: bool
    user: User | None
    """None where the token is the app's own."""

    @classmethod
    def of(cls, row: Sequence[Any]) -> "_Row":
        token_id, app_id, text, is_due, *columns = row
        return cls(token_id, app_id, text, is_due, user_or_none(columns))


class AppToken(Bounded):
    """The token of a request: of which app it is, and what its user, if it has one, lets that app do."""

    def __init__(self, row: _Row, digest: str) -> None:
        self.token_id = row.token_id
        self.app_id = row.app_id
        self.is_due = row.is_due
        self.scopes = frozenset(scopes.parsed(row.scopes))
        self.digest = digest

    def check(self, request: Request) -> None:
        """Raise PermissionDenied at an address that the token's scopes do not open."""
        if request.method == "OPTIONS":  # it says what there is for all
            return
        match = request._request.resolver_match
        route = match.route if match is not None else ""
        if not scopes.opens(self.scopes, route, is_reading=request.method in READING):
            raise PermissionDenied(OUTSIDE)


def digest_of(token: str) -> str:
    """The hash under which a token is kept."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


class BearerAuthentication(BaseAuthentication, rates.Claimed):
    """Tokens of apps. `request.auth` is the AppToken; the user is anonymous where the token is the app's own."""

    def token_of(self, request: HttpRequest) -> str | None:
        """The token that a request names; None where it names none."""
        kind, _separator, token = request.META.get("HTTP_AUTHORIZATION", "").strip().partition(" ")
        return token.strip() if kind.lower() == "bearer" else None

    def claim(self, request: HttpRequest) -> tuple[str, int | None]:
        """The text after `Bearer`, which the rates count before it is proven (`rates.Claimed`)."""
        token = self.token_of(request)
        return (rates.token_credential(f"bearer {token}") if token is not None else ""), None

    def authenticate(self, request: Request) -> tuple[User | AnonymousUser, AppToken] | None:
        """The user of the token, and the token; None without one. Raises AuthenticationFailed."""
        text = self.token_of(request._request)
        if text is None:
            return None
        digest = digest_of(text)
        rows = fetch(_by_digest(), {"digest": digest, "noted": NOTED}, into=_Row.of)
        if not rows:
            raise AuthenticationFailed("The access token is invalid")
        row = rows[0]
        token = AppToken(row, digest)
        if token.is_due:
            life = timedelta(days=settings.APP_TOKEN_DAYS)
            fetch(NOTE, {"token": token.token_id, "noted": NOTED, "life": life})
        return row.user or AnonymousUser(), token

    def authenticate_header(self, request: Request) -> str:
        """The challenge of a 401."""
        return 'Bearer realm="feedsite"'


class StreamAuthentication(BearerAuthentication):
    """Finds the token of an open connection: browsers can name no header then, so the token may stand in the
    address, or as the protocol of a socket.
    """

    def token_of(self, request: HttpRequest) -> str | None:
        """The token that a request names; None where it names none."""
        named = super().token_of(request)
        if named is None:
            named = (
                request.GET.get("access_token") or request.META.get("HTTP_SEC_WEBSOCKET_PROTOCOL", "").strip() or None
            )
        return named
