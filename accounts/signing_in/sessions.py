"""Sessions in PostgreSQL, with signed copies on the cache server that save a query per page.

See docs/decisions.md: A cached session counts only if the user's row says so.
"""

import time
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib import auth
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.middleware import AuthenticationMiddleware as DjangoAuthenticationMiddleware
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.core import signing
from django.core.cache import cache
from django.db import DEFAULT_DB_ALIAS, transaction
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.functional import SimpleLazyObject

from accounts.models import Session, User
from storage import keys
from storage.connections import fetch
from storage.draws import Draw

KEPT = timedelta(hours=1)
"""Life of a copy. Then the session costs its query again."""

# By the web process's clock, which dates sessions.
ROW = """
    SELECT s.session_data, extract(epoch FROM s.expire_date)::float8, u.session_generation,
        p.last_seen_at IS NULL OR p.last_seen_at < now() - %s::interval
    FROM django_session s
    LEFT JOIN accounts_user u ON u.id = s.user_id
    LEFT JOIN usersessions_usersession p ON p.session_key = s.session_key
    WHERE s.session_key = %s AND s.expire_date > to_timestamp(%s)
"""


class _SessionRow(NamedTuple):
    text: str
    expires: float
    generation: int | None
    """None if the session has no user."""
    is_long_unseen: bool


class SessionStore(DatabaseStore):
    """Django's database sessions with cached copies. `generation`: the user's when read. None: no copy."""

    generation: int | None = None
    is_long_unseen = False
    """Whether the row was read while the session list's entry is missing or old."""
    _owner: str | None = None
    """The user's id in the session as read."""
    _text = ""
    """The row as read."""

    @classmethod
    def get_model_class(cls) -> type[Session]:
        """Session rows."""
        return Session

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        """A row with its user."""
        row = super().create_model_instance(data)
        assert isinstance(row, Session)  # noqa: S101 (get_model_class says so)
        row.user_id = data.get(auth.SESSION_KEY)
        return row

    def load(self) -> dict[str, Any]:
        """Data from a valid copy, else from PostgreSQL."""
        copy = _cached_copy(self.session_key)
        if copy is None:
            return self._read()
        self.generation, text = copy
        return self._noted(text)

    def read_again(self) -> None:
        """Read from PostgreSQL."""
        self._session_cache = self._read()

    def save(self, must_create: bool = False) -> None:
        """Write the row and drop the copy."""
        super().save(must_create)
        self.generation = None
        _delete_copy(self.session_key)

    def renew_hash(self, session_hash: str) -> None:
        """Replace the hash of an earlier secret key. The session's key stays, because parallel requests have it.

        Leaves a row that has changed since it was read: its next request will come here.
        """
        self._session_cache[auth.HASH_SESSION_KEY] = session_hash
        row = Session.objects.filter(session_key=self.session_key, session_data=self._text)
        row.update(session_data=self.encode(self._session_cache))
        _delete_copy(self.session_key)

    def delete(self, session_key: str | None = None) -> None:
        """Delete row and copy."""
        key = session_key or self.session_key
        if key is None:
            return
        with transaction.atomic():
            gone, _ = Session.objects.filter(session_key=key).delete()
            if not gone and self._owner:  # a failover may lose the row but not the copy
                User.objects.filter(pk=self._owner).update(session_generation=Draw())
        _delete_copy(key)

    def _read(self) -> dict[str, Any]:
        """Read the session's data from PostgreSQL. Without a row the session loses its key, as in Django."""
        key = self.session_key
        params = [settings.LAST_SEEN_INTERVAL, key, time.time()]
        rows = fetch(ROW, params, into=_SessionRow._make) if _is_key(key) else []
        if not rows:
            self._session_key = None
            return {}
        row = rows[0]
        self.generation, self.is_long_unseen = row.generation, row.is_long_unseen
        if key and row.generation is not None:
            _store_copy(key, row.generation, row.expires, row.text)
        return self._noted(row.text)

    def _noted(self, text: str) -> dict[str, Any]:
        self._text, data = text, self.decode(text)
        self._owner = data.get(auth.SESSION_KEY)
        return data


# --- Copies ----------------------------------------------------------------------------------------------
def _store_copy(key: str, generation: int, expires: float, text: str) -> None:
    seconds = min(KEPT.total_seconds(), expires - time.time())
    signed = _signer(key).sign(f"{generation} {expires} {text}")
    cache.set(keys.session(_digest(key)), signed, max(1, int(seconds)))


def _cached_copy(key: str | None) -> tuple[int, str] | None:
    signed = cache.get(keys.session(_digest(key))) if key and _is_key(key) else None
    if not key or not isinstance(signed, str):
        return None
    try:
        generation, expires, text = _signer(key).unsign(signed).split(" ", 2)
    except signing.BadSignature:
        return None
    return (int(generation), text) if float(expires) > time.time() else None


def _delete_copy(key: str | None) -> None:
    if key:
        cache.delete(keys.session(_digest(key)))


def _is_key(key: str | None) -> bool:
    """Whether Django could have made this session key. Browsers send anything."""
    return key is not None and key.isascii() and key.isalnum()


def _signer(key: str) -> signing.Signer:
    return signing.Signer(salt=f"accounts.sessions {key}")


def _digest(key: str) -> str:
    """The cache key, which does not reveal the session key."""
    return salted_hmac("accounts.sessions", key, algorithm="sha256").hexdigest()[:32]


# --- Whose session it is ---------------------------------------------------------------------------------
class Backend(ModelBackend):
    """Reads users by a prepared statement: the ORM takes longer to build one than to run it."""

    def get_user(self, user_id: Any) -> User | None:
        """The user, if active."""
        rows = fetch(_user_query(), [int(user_id)])
        user = User.from_db(DEFAULT_DB_ALIAS, _user_columns(), rows[0]) if rows else None
        return user if user is not None and self.user_can_authenticate(user) else None


@lru_cache(1)
def _user_columns() -> list[str]:
    return [field.attname for field in User._meta.concrete_fields]


@lru_cache(1)
def _user_query() -> str:
    columns = ", ".join(f'"{field.column}"' for field in User._meta.concrete_fields)
    return f'SELECT {columns} FROM "accounts_user" WHERE "id" = %s'


class AuthenticationMiddleware(DjangoAuthenticationMiddleware):
    """Authenticates by valid sessions."""

    def process_request(self, request: HttpRequest) -> None:
        """Set a lazily read user."""
        super().process_request(request)
        request.user = SimpleLazyObject(lambda: user_of(request))  # type: ignore[assignment]


def user_of(request: HttpRequest) -> Any:
    """The session's user, or AnonymousUser if it has ended."""
    session: Any = request.session
    user = _session_user(session)
    if user is not None and session.generation not in (None, user.session_generation):
        session.read_again()
        user = _session_user(session)
    if user is not None and not _is_valid(session, user):
        session.flush()
        user = None
    return user or AnonymousUser()


def _session_user(session: SessionStore) -> User | None:
    if session.get(auth.BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        return None
    return Backend().get_user(session[auth.SESSION_KEY])


def _is_valid(session: SessionStore, user: User) -> bool:
    """Whether the session has the user's hash. Unlike Django, keeps the session's key if the secret key is new."""
    found = session.get(auth.HASH_SESSION_KEY, "")
    if constant_time_compare(found, user.get_session_auth_hash()):
        return True
    is_earlier = any(constant_time_compare(found, each) for each in user.get_session_auth_fallback_hash())
    if is_earlier:
        session.renew_hash(user.get_session_auth_hash())
    return is_earlier
