"""Tokens, and callers by `Authorization: Token …`. clientapi/oauth/bearer.py reads other apps' tokens.

See docs/decisions.md: One table holds all tokens.
"""

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple

from django.http import HttpRequest
from rest_framework.authentication import TokenAuthentication as RestTokenAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from accounts.models import User
from accounts.rows import user_columns, user_or_none
from accounts.signing_in_models import OWN_APP
from storage.connections import fetch
from web import rates

NOTED = timedelta(hours=1)
"""An app token's use is written at most once in this time."""


@cache
def _token_query() -> str:
    return f"""
        SELECT t.id, t.application_id, t.scope, t.updated < now() - %(noted)s, {user_columns("u")}
        FROM oauth2_provider_accesstoken t LEFT JOIN accounts_user u ON u.id = t.user_id
        WHERE t.token_checksum = %(digest)s AND t.expires > now() AND (t.user_id IS NULL OR u.is_active)
    """


class ValidToken(NamedTuple):
    """An unexpired token of an active user or of none."""

    token_id: int
    app_id: int
    scopes: str
    is_due: bool
    """Whether to write its use."""
    user: User | None
    """None if it is the app's own."""

    @classmethod
    def of(cls, row: Sequence[Any]) -> "ValidToken":
        """A token from a row of `_token_query`."""
        token_id, app_id, scopes, is_due, *columns = row
        return cls(token_id, app_id, scopes, is_due, user_or_none(columns))


def digest_of(text: str) -> str:
    """The stored hash."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def find_token(text: str) -> ValidToken | None:
    """The unexpired token, unless its user is inactive."""
    rows = fetch(_token_query(), {"digest": digest_of(text), "noted": NOTED}, into=ValidToken.of)
    return rows[0] if rows else None


def token_id_of(request: Request) -> int:
    """The id of the request's API token, or 0."""
    return request.auth if isinstance(request.auth, int) else 0


class TokenAuthentication(RestTokenAuthentication, rates.ClaimingAuthenticator):
    """Authenticates by an API token; `request.auth` is its id."""

    def claim(self, request: HttpRequest) -> tuple[str, int | None]:
        """The unproven token, for rates (`rates.ClaimingAuthenticator`)."""
        words = request.META.get("HTTP_AUTHORIZATION", "").split(None, 1)
        if not words or words[0].lower() != "token":
            return "", None
        return rates.token_credential(" ".join(words[1:])), None

    def authenticate_credentials(self, key: str) -> tuple[User, int]:
        """The user and the token's id. Raises AuthenticationFailed."""
        token = find_token(key)
        if token is None or token.user is None or token.app_id != OWN_APP:
            raise AuthenticationFailed("Invalid token.")
        return token.user, token.token_id
