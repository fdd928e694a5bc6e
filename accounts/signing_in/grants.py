"""The grounds of a connection that stays open: a session, a token, or a ticket that the site gave for one of them.

A ticket goes where neither cookie nor token does, in an address, and so it is short-lived and holds neither: signed
are the user, for which of the site's own origins it was made, and the id of a token, or a mark that changes when all
sessions of the user end.

A stream that only a session's ticket vouches for ends after a minute.
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
from accounts.signing_in.tokens import token_of
from storage.connections import fetch, id_array
from web import rates

TICKET_SECONDS = 30
"""How long a ticket opens a connection."""
BORROWED_SECONDS = 60
"""How long a connection lives that only a ticket of a session vouches for: no program can tell whether that ended."""

# The connections that may stay open. One ends when its user is deactivated or gets another password, and when its
# session or token is gone; without a token also when all sessions of the user end.
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
    """The contents of a ticket."""

    user_id: int
    origin: str
    token: int
    """The id of the API token that the ticket was given for; 0 where it was a session."""
    sessions: str
    """The mark of the user's sessions where it was one; empty for a token."""


class Grant(NamedTuple):
    """The credentials of one open connection. Those that it does not depend on are empty."""

    user_id: int
    password: str
    """The MD5 of the password's hash: tells a changed password, and nothing else."""
    session: str = ""
    epoch: int = 0
    """The times that all sessions of the user had been ended when the connection was opened."""
    token: int = 0
    """The id of the token by which the connection was opened, of the API or of an app."""

    @property
    def is_borrowed(self) -> bool:
        """Whether only a ticket stands for the connection."""
        return not (self.session or self.token)


def issue_ticket(*, user: User, origin: str, token: int) -> str:
    """A signed ticket for connections from `origin`; `token` is the id of an API token, or 0."""
    ticket = Ticket(user.pk, origin, token, "" if token else session_mark(user))
    return _signer.sign_object(ticket, compress=False)


def read_ticket(text: str) -> Ticket | None:
    """The content of a ticket of ours that is not older than `TICKET_SECONDS`, else None."""
    try:
        user_id, origin, token, sessions = _signer.unsign_object(text, max_age=TICKET_SECONDS)
    except (signing.BadSignature, ValueError):
        return None
    return Ticket(user_id, origin, token, sessions)


class TicketAuthentication(BaseAuthentication, rates.Claimed):
    """`?ticket=`, where no token and no session came along. Raises AuthenticationFailed."""

    def claim(self, request: HttpRequest) -> tuple[str, int | None]:
        """The key of the rate and the user that the ticket names (`rates.Claimed`): its signature proves the user."""
        ticket = read_ticket(request.GET.get("ticket", ""))
        return "", ticket and ticket.user_id

    def authenticate(self, request: Request) -> tuple[User, Ticket] | None:
        """The user of the ticket in the address, and the ticket; None without one. Raises AuthenticationFailed."""
        text = request.query_params.get("ticket")
        if not text:
            return None
        ticket = read_ticket(text)
        user = User.objects.active().filter(pk=ticket.user_id).first() if ticket else None
        if ticket is None or user is None or not _still_counts(ticket, user):
            raise AuthenticationFailed("Invalid ticket.")
        return user, ticket


def _still_counts(ticket: Ticket, user: User) -> bool:
    """Whether the token that a ticket was given for is still there, or the sessions of its user have not all ended."""
    if not ticket.token:
        return ticket.sessions == session_mark(user)
    return bool(AccessToken.objects.filter(pk=ticket.token, user=user, expires__gt=Now()).exists())


class TicketScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Tickets in the OpenAPI document."""

    target_class = "accounts.signing_in.grants.TicketAuthentication"
    name = "ticket"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """The scheme as OpenAPI describes it."""
        return {"type": "apiKey", "in": "query", "name": "ticket", "description": "As a redirect of the site gives it."}


def token_behind(request: Request) -> int:
    """The id of the API token that a request was authenticated by, itself or by its ticket; 0 without one."""
    return request.auth.token if isinstance(request.auth, Ticket) else token_of(request)


def grant_of(request: Request, user: User) -> Grant:
    """The credentials of a connection that this request opens."""
    password = password_mark(user)
    if request.auth is None:  # neither a token nor a ticket
        return Grant(user.pk, password, request._request.session.session_key or "", user.session_epoch)
    return Grant(user.pk, password, epoch=user.session_epoch, token=token_behind(request))


def password_mark(user: User) -> str:
    """The mark by which a grant knows a changed password."""
    return hashlib.md5(user.password.encode(), usedforsecurity=False).hexdigest()


def session_mark(user: User) -> str:
    """The mark by which a ticket knows that its session ended with all others of the user, or the password changed."""
    return salted_hmac("accounts.ticket", f"{user.password} {user.session_epoch}").hexdigest()[:16]


def standing(grants: Sequence[Grant]) -> list[bool]:
    """Whether each still holds, by one query. Raises Django's database errors."""
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
