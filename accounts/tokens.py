"""The caller of a request by `Authorization: Token …`: one prepared query and no write a request.

See docs/decisions.md: Tokens are knox's.
"""

import hashlib
from functools import cache

from django.http import HttpRequest
from knox.auth import TokenAuthentication as KnoxTokenAuthentication
from rest_framework.exceptions import AuthenticationFailed

from accounts.models import User
from accounts.rows import user_columns, user_of
from storage.connections import fetch
from web import rates


@cache
def _by_digest() -> str:
    return f"""
        SELECT {user_columns("u")} FROM knox_authtoken t JOIN accounts_user u ON u.id = t.user_id
        WHERE t.digest = %(digest)s AND u.is_active AND (t.expiry IS NULL OR t.expiry > now())
    """  # noqa: S608 (columns of our own model)


class TokenAuthentication(KnoxTokenAuthentication, rates.Claimed):  # type: ignore[misc]
    """Knox's hashed tokens, found by their hash; `request.auth` is that hash.

    Knox itself looks at every token of the user and deletes expired ones while it reads; here issuing a token does.
    Raises AuthenticationFailed, in the same words whatever is wrong with the token or its user.
    """

    def claim(self, request: HttpRequest) -> tuple[str, int | None]:
        """The text after `Token`, which the rates count before it is proven (`rates.Claimed`)."""
        words = request.META.get("HTTP_AUTHORIZATION", "").split(None, 1)
        if not words or words[0].lower() != "token":
            return "", None
        return rates.token_credential(" ".join(words[1:])), None

    def authenticate_credentials(self, token: bytes) -> tuple[User, str]:
        """The user of the token, and the token's hash. Raises AuthenticationFailed."""
        # The same digest as knox.crypto.hash_token makes: the SHA-512 of the token's bytes.
        digest = hashlib.sha512(token).hexdigest()
        rows = fetch(_by_digest(), {"digest": digest})
        if not rows:
            raise AuthenticationFailed("Invalid token.")
        return user_of(rows[0]), digest
