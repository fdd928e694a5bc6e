"""What an open connection rests on: a session, a token, or a ticket issued for one.

Tickets travel in addresses, so they are short-lived and hold no credential.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.core import signing
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from oauth2_provider.models import AccessToken
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from accounts.models import User
from accounts.signing_in.tokens import token_id_of
from storage.connections import fetch, id_array
from web import rates

TICKET_SECONDS = 30
"""How long a ticket can open a connection."""
BORROWED_SECONDS = 60
"""Life of a connection with a session's ticket, because nobody can tell whether that session ended."""

# Connections that may stay open. One ends if its user is deactivated or changes the password, or its session or token
# is gone. Without a token also if all sessions end.
STANDING = """
    SELECT held.place FROM unnest(%(users)s::bigint[], %(passwords)s::text[], %(sessions)s::text[], %(epochs)s::int[],
        %(tokens)s::bigint[])
        WITH ORDINALITY AS held (user_id, password, session, epoch, token, place)
    JOIN accounts_user u ON u.id = held.user_id AND u.is_active AND md5(u.password) = held.password
    WHERE (held.token <> 0 OR held.epoch = u.session_epoch) AND (held.session = '' OR EXISTS (
            SELECT FROM django_session d WHERE d.session_key = held.session AND d.expire_date > now())
        ) AND (held.token = 0 OR EXISTS (
            SELECT FROM oauth2_provider_accesstoken t
            WHERE t.id = held.token AND t.user_id = u.id AND t.expires > now()))
"""

_signer = signing.TimestampSigner(salt="accounts.ticket")


class Ticket(NamedTuple):
    """A ticket's content."""

    user_id: int
    origin: str
    token: int
    """The API token's id. 0 for a session."""
    sessions: str
    """The mark of the user's sessions. "" for a token."""


class Grant(NamedTuple):
    """The credentials of an open connection."""

    user_id: int
    password: str
    """MD5 of the password's hash. It only tells that the password changed."""
    session: str = ""
    epoch: int = 0
    """The user's `session_epoch` at opening."""
    token: int = 0
    """The id of a token of the API or an app."""

    @property
    def is_ticket_only(self) -> bool:
        """Whether only a ticket vouches for it."""
        return not (self.session or self.token)


def issue_ticket(*, user: User, origin: str, token: int) -> str:
    """A signed ticket for connections from `origin`. `token`: its id, or 0."""
    ticket = Ticket(user.pk, origin, token, "" if token else session_mark(user))
    return _signer.sign_object(ticket, compress=False)


def read_ticket(text: str) -> Ticket | None:
    """A valid ticket's content, or None."""
    try:
        user_id, origin, token, sessions = _signer.unsign_object(text, max_age=TICKET_SECONDS)
    except (signing.BadSignature, ValueError):
        return None
    return Ticket(user_id, origin, token, sessions)


class TicketAuthentication(BaseAuthentication, rates.ClaimingAuthenticator):
    """Authenticates by `?ticket=`, without token or session."""

    def claim(self, request: HttpRequest) -> tuple[str, int | None]:
        """Rate key and user. The signature proves the user."""
        ticket = read_ticket(request.GET.get("ticket", ""))
        return "", ticket and ticket.user_id

    def authenticate(self, request: Request) -> tuple[User, Ticket] | None:
        """The ticket's user and the ticket."""
        text = request.query_params.get("ticket")
        if not text:
            return None
        ticket = read_ticket(text)
        user = User.objects.active().filter(pk=ticket.user_id).first() if ticket else None
        if ticket is None or user is None or not _is_ticket_valid(ticket, user):
            raise AuthenticationFailed("Invalid ticket.")
        return user, ticket


def _is_ticket_valid(ticket: Ticket, user: User) -> bool:
    """Whether the ticket's token is valid or, for a session's ticket, not all of the user's sessions have ended."""
    if not ticket.token:
        return ticket.sessions == session_mark(user)
    return bool(AccessToken.objects.filter(pk=ticket.token, user=user, expires__gt=Now()).exists())


class TicketScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Tickets in the OpenAPI document."""

    target_class = "accounts.signing_in.grants.TicketAuthentication"
    name = "ticket"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """The OpenAPI scheme."""
        return {"type": "apiKey", "in": "query", "name": "ticket", "description": "As a redirect of the site gives it."}


def source_token_id(request: Request) -> int:
    """The API token's id behind a request, or 0."""
    return request.auth.token if isinstance(request.auth, Ticket) else token_id_of(request)


def grant_of(request: Request, user: User) -> Grant:
    """Credentials of a connection that this request opens."""
    password = password_mark(user)
    if request.auth is None:  # neither a token nor a ticket
        return Grant(user.pk, password, request._request.session.session_key or "", user.session_epoch)
    return Grant(user.pk, password, epoch=user.session_epoch, token=source_token_id(request))


def password_mark(user: User) -> str:
    """A digest that changes with the user's password."""
    return hashlib.md5(user.password.encode(), usedforsecurity=False).hexdigest()


def session_mark(user: User) -> str:
    """A digest that changes when all of the user's sessions end at once, or the password changes."""
    return salted_hmac("accounts.ticket", f"{user.password} {user.session_epoch}").hexdigest()[:16]


def are_valid(grants: Sequence[Grant]) -> list[bool]:
    """Whether each grant still holds. One query."""
    rows = fetch(
        STANDING,
        {
            "users": [grant.user_id for grant in grants],
            "passwords": [grant.password for grant in grants],
            "sessions": [grant.session for grant in grants],
            "epochs": [grant.epoch for grant in grants],
            "tokens": id_array(grant.token for grant in grants),
        },
    )
    held = {row[0] for row in rows}
    return [place in held for place in range(1, len(grants) + 1)]
