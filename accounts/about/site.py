"""The site as all rooms ask for it: `current()`.

Each process keeps what it read for `SECONDS`, and one of its threads reads anew while the others go on with what they
have. So a page makes no statement for it, a change is seen everywhere within `SECONDS`, and at once in the process that
made it. While PostgreSQL refuses, what was read before holds on.

There is no copy on the cache server: a process that read before a change could write an old one after it.
"""

import logging
import threading
import time
from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from accounts.about.models import NAME, Looking, SignUp
from storage.connections import fetch

logger = logging.getLogger(__name__)

SECONDS = 5.0
"""How long a process keeps what it read."""
RULES = 100
"""Rules that a site has at most."""


class Rule(msgspec.Struct, frozen=True):
    """One rule, by the number that readers see."""

    id: int
    number: int
    text: str


class Site(msgspec.Struct, frozen=True):
    """The words of the site on itself, who may look and who may join."""

    name: str = NAME
    short_description: str = ""
    description: str = ""
    contact_email: str = ""
    contact_username: str = ""
    logo: dict[str, Any] | None = None
    """The facts of a picture (media.objects)."""
    accent: str = ""
    """#rrggbb, or nothing for the colour of site.css."""
    language: str = ""
    time_zone: str = ""
    looking: str = Looking.EVERYBODY
    chosen_sign_up: str = SignUp.OPEN
    """The choice of the admin; `sign_up` is what holds."""
    members_invite: bool = False
    announcement: str = ""
    announcement_until: datetime | None = None
    read_only_why: str = ""
    """The reason for the read-only mode; empty: it is off."""
    changed_at: datetime | None = None
    """When an admin changed the site last."""
    user_count: int = 0
    active_count: int = 0
    item_count: int = 0
    rules: tuple[Rule, ...] = ()

    @property
    def sign_up(self) -> SignUp:
        """The way in which people join: FEEDSITE_SIGN_UP, else what the admin chose."""
        return SignUp(settings.SIGN_UP or self.chosen_sign_up)

    @property
    def is_for_members(self) -> bool:
        """Whether strangers see only what the site says of itself, and its sign-up."""
        return self.looking == Looking.MEMBERS

    @property
    def zone(self) -> tzinfo:
        """The time zone of readers whose own is not known."""
        zone: ZoneInfo = ZoneInfo(self.time_zone) if self.time_zone else settings.SITE_ZONE
        return zone

    @property
    def takes_notes(self) -> bool:
        """Whether reading leaves its notes: who was here, what was read, shown and opened, where a reader is. In the
        read-only mode it leaves none.
        """
        return not self.read_only_why

    @property
    def news(self) -> str:
        """The reason for the read-only mode, else the announcement while it counts."""
        if self.read_only_why:
            return self.read_only_why
        until = self.announcement_until
        return self.announcement if until is None or until > timezone.now() else ""


UNREAD = Site(looking=Looking.MEMBERS, chosen_sign_up=SignUp.CLOSED)
"""The site of a process that could not read it yet: as closed as an admin may have made it."""
COLUMNS = (
    "name",
    "short_description",
    "description",
    "contact_email",
    "contact_username",
    "accent",
    "language",
    "time_zone",
    "looking",
    "members_invite",
    "announcement",
    "announcement_until",
    "read_only_why",
    "changed_at",
    "user_count",
    "active_count",
    "item_count",
)
SITE = f"SELECT logo::text, sign_up, {', '.join(COLUMNS)} FROM about_sitesettings"  # noqa: S608 (constants)
RULES_IN_FORCE = f"""
    SELECT r.id, r.text FROM about_rule r WHERE r.withdrawn_at IS NULL ORDER BY r.number, r.id LIMIT {RULES}
"""  # noqa: S608 (a constant)


class Kept:
    """The copy of the site that one process has."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._site: Site | None = None
        self._until = 0.0

    def get(self) -> Site:
        """The site, read anew when its time is over."""
        site = self._site
        if site is not None and time.monotonic() < self._until:
            return site
        if not self._lock.acquire(blocking=site is None):
            return site  # type: ignore[return-value]  # another thread reads
        try:
            if self._site is None or time.monotonic() >= self._until:
                self.set(self._read())
            assert self._site is not None  # noqa: S101 (for the type checker)
            return self._site
        finally:
            self._lock.release()

    @property
    def last(self) -> Site:
        """The site as it was read last; the defaults before the first time."""
        return self._site or Site()

    def set(self, site: Site, seconds: float | None = None) -> None:
        """Keep this for `SECONDS`, or so many."""
        self._until = time.monotonic() + (SECONDS if seconds is None else seconds)
        self._site = site

    def forget(self) -> None:
        """Read anew the next time."""
        self._until = 0.0

    def _read(self) -> Site:
        try:
            return read()
        except DatabaseError as error:
            logger.warning("the site's description could not be read: %s", error)
            return self._site or UNREAD


kept = Kept()


def known() -> Site:
    """The site as this process read it last, however long ago: for pages that must wait for nothing."""
    return kept.last


def current() -> Site:
    """The site, as this process knows it."""
    return kept.get()


def read() -> Site:
    """The site, from PostgreSQL."""
    rules = tuple(Rule(key, number, text) for number, (key, text) in enumerate(fetch(RULES_IN_FORCE), 1))
    for logo, sign_up, *columns in fetch(SITE):
        fields = dict(zip(COLUMNS, columns, strict=True))
        facts = msgspec.json.decode(logo) if logo else None
        return Site(**fields, logo=facts, chosen_sign_up=sign_up, rules=rules)
    return Site(rules=rules)
