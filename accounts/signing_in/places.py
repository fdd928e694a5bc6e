"""Where a user is signed in: browsers (sessions), programs (API tokens) and apps."""

import re
from collections.abc import Sequence
from datetime import datetime
from ipaddress import ip_address
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.db import connection, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _
from oauth2_provider.models import AccessToken
from oauth2_provider.scopes import get_scopes_backend

from accounts.about.site import current
from accounts.actions import end_streams, revoke_token
from accounts.models import ClientApp, Session, SessionOrigin, TokenOrigin, User
from accounts.signing_in.sessions import SessionStore
from accounts.signing_in_models import OWN_APP

AGENT_LENGTH = 200
SHOWN = 100
"""Most sessions in a list, latest first."""
BROWSERS = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrome", "Chrome"), ("Safari", "Safari"))
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
"""Words of a user agent and their names. The first match counts."""

NOTE = """
    INSERT INTO usersessions_usersession (session_key, user_id, user_agent, ip, created_at, last_seen_at)
    SELECT session_key, %(user)s, %(agent)s, %(ip)s::inet, now(), now()
    FROM django_session WHERE session_key = %(key)s FOR KEY SHARE
    ON CONFLICT (session_key) DO UPDATE SET
        user_id = excluded.user_id, user_agent = excluded.user_agent, ip = excluded.ip, last_seen_at = now()
"""


class SignedInDevice(NamedTuple):
    """A session or token for its owner. `key` opens nothing."""

    key: str
    name: str
    ip: str
    since: datetime
    seen_at: datetime | None
    until: datetime | None
    is_here: bool
    allowed: Sequence[str] = ()
    """What an app may do, in sentences."""


def device_name(agent: str) -> str:
    """Browser and system, or the program's name."""
    return _known_name(agent) or re.sub(r"[^ -~]", "", agent)[:40].strip() or _("Unknown device")


def device_kind(agent: str) -> str:
    """Browser and system of a user agent. It never quotes the agent: letters must carry no stranger's words."""
    return _known_name(agent) or _("Unknown device")


def _known_name(agent: str) -> str:
    browser = next((name for word, name in BROWSERS if word in agent), "")
    system = next((name for word, name in SYSTEMS if word in agent), "")
    if browser and system:
        return _("%(browser)s on %(system)s") % {"browser": browser, "system": system}
    return browser or system


def record_visit(request: HttpRequest) -> None:
    """Record where and when this session was seen."""
    key, user_id = request.session.session_key, request.session.get(SESSION_KEY)
    if key and user_id and current().is_writable:
        with connection.cursor() as cursor:
            said = {"agent": agent_of(request), "ip": ip_of(request)}
            cursor.execute(NOTE, {"key": key, "user": int(user_id), **said})


def agent_of(request: HttpRequest) -> str:
    """The request's user agent."""
    return "".join(c for c in request.headers.get("User-Agent", "") if c.isprintable())[:AGENT_LENGTH]


def ip_of(request: HttpRequest) -> str:
    """The request's network address."""
    try:
        return str(ip_address(str(request.META.get("REMOTE_ADDR", "")).partition("%")[0]))
    except ValueError:  # a Unix socket
        return "0.0.0.0"  # noqa: S104 (a column that is never empty)


def sessions(user: User, here: str | None) -> list[SignedInDevice]:
    """The user's valid sessions, this one first."""
    rows = SessionOrigin.objects.filter(user=user).order_by("-last_seen_at")[:SHOWN]
    kept = Session.objects.filter(
        session_key__in=[row.session_key for row in rows], user_id=user.pk, expire_date__gt=timezone.now()
    )
    standing = {row.session_key for row in kept if _is_current_session(row, user)}
    found = [
        SignedInDevice(
            _device_key(row.session_key),
            device_name(row.user_agent),
            row.ip,
            row.created_at,
            row.last_seen_at,
            None,
            row.session_key == here,
        )
        for row in rows
        if row.session_key in standing
    ]
    return sorted(found, key=lambda place: not place.is_here)


def _is_current_session(row: Session, user: User) -> bool:
    """Whether a session is newer than the last password change and log-out everywhere."""
    return bool(SessionStore().decode(row.session_data).get(HASH_SESSION_KEY) == user.get_session_auth_hash())


def tokens(user: User) -> list[SignedInDevice]:
    """The user's API tokens, newest first."""
    rows = _valid_tokens(user).filter(application=OWN_APP).select_related("origin").order_by("-pk")
    return [_token_device(row) for row in rows[: settings.TOKEN_CAP]]


def _valid_tokens(user: User) -> QuerySet[Any]:
    tokens: QuerySet[Any] = AccessToken.objects.filter(user=user, expires__gt=timezone.now())
    return tokens


def _token_device(row: Any) -> SignedInDevice:
    origin: TokenOrigin | None = getattr(row, "origin", None)
    agent, ip = (origin.user_agent, origin.ip) if origin is not None else ("", "")
    return SignedInDevice(
        _device_key(row.token_checksum), device_name(agent), ip, row.created, None, row.expires, False
    )


def apps(user: User) -> list[SignedInDevice]:
    """Apps with a token of the user, newest first."""
    rows = _valid_tokens(user).exclude(application=OWN_APP).order_by("-pk")[: settings.TOKEN_CAP]
    names = dict(ClientApp.objects.filter(pk__in=[row.application_id for row in rows]).values_list("pk", "name"))
    return [
        SignedInDevice(
            _device_key(row.token_checksum),
            names.get(row.application_id) or _("Unknown app"),
            "",
            row.created,
            row.updated,
            row.expires,
            False,
            _scope_descriptions(row),
        )
        for row in rows
    ]


def _scope_descriptions(row: Any) -> list[str]:
    held = row.scope.split()
    return [str(words) for scope, words in get_scopes_backend().get_all_scopes().items() if scope in held]


def end_token(*, user: User, key: str) -> bool:
    """Revoke one of the user's tokens by its key. False if there is none."""
    rows = AccessToken.objects.filter(user=user).values_list("pk", "token_checksum")
    found = next((pk for pk, digest in rows if _device_key(digest) == key), None)
    return found is not None and revoke_token(token_id=found)


def end_session(*, user: User, key: str) -> bool:
    """End one of the user's sessions by its key. False if there is none."""
    keys = SessionOrigin.objects.filter(user=user).values_list("session_key", flat=True)
    found = next((each for each in keys if _device_key(each) == key), None)
    if found is None:
        return False
    with transaction.atomic():
        User.objects.locked().get(pk=user.pk)  # the session's end writes it too
        SessionStore(found).delete()
        end_streams(user_id=user.pk)
    return True


def _device_key(secret: str) -> str:
    return salted_hmac("accounts.places", secret, algorithm="sha256").hexdigest()[:32]
