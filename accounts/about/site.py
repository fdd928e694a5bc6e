"""The site as all packages read it, by `current()`.

Each process keeps a copy for `SECONDS`, and the last one while PostgreSQL is down. On the cache server a process could
overwrite it with an older one.
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
from django.utils.translation import get_language

from accounts.about.models import NAME, PublicAccess, SignUp
from storage.connections import fetch

logger = logging.getLogger(__name__)

SECONDS = 5.0
"""How long a process keeps its copy."""
RULES = 100
"""Most rules of a site."""


class Rule(msgspec.Struct, frozen=True):
    """A rule with the number that readers see."""

    id: int
    number: int
    text: str


class Site(msgspec.Struct, frozen=True):
    """The site's description, and who may look and join."""

    name: str = NAME
    short_description: str = ""
    description: str = ""
    contact_email: str = ""
    contact_username: str = ""
    logo: dict[str, Any] | None = None
    """Facts of a picture (media.objects)."""
    accent: str = ""
    """#rrggbb, or "" for the default colour."""
    language: str = ""
    time_zone: str = ""
    looking: str = PublicAccess.EVERYBODY
    chosen_sign_up: str = SignUp.OPEN
    """The admin's choice. `sign_up` is what counts."""
    members_invite: bool = False
    announcement: str = ""
    announcements: dict[str, str] = {}
    """The announcement in languages, by code."""
    announcement_until: datetime | None = None
    shows_figures: bool = False
    """Whether the page of moderation's figures is public."""
    read_only_why: str = ""
    """Reason for the read-only mode. Empty: off."""
    changed_at: datetime | None = None
    """Last change by an admin."""
    user_count: int = 0
    active_count: int = 0
    item_count: int = 0
    rules: tuple[Rule, ...] = ()

    @property
    def summary(self) -> str:
        """The short description, else the first paragraph of the description. "" if nobody has written one."""
        return self.short_description or " ".join(self.description.strip().split("\n\n")[0].split())

    @property
    def sign_up(self) -> SignUp:
        """FEEDSITE_SIGN_UP, else the admin's choice."""
        return SignUp(settings.SIGN_UP or self.chosen_sign_up)

    @property
    def is_for_members(self) -> bool:
        """Whether strangers see only description and sign-up."""
        return self.looking == PublicAccess.MEMBERS

    @property
    def zone(self) -> tzinfo:
        """Time zone of readers without one."""
        zone: ZoneInfo = ZoneInfo(self.time_zone) if self.time_zone else settings.SITE_ZONE
        return zone

    @property
    def is_writable(self) -> bool:
        """Whether reading may write, such as presence or read positions."""
        return not self.read_only_why

    @property
    def news(self) -> str:
        """Reason for the read-only mode, else the announcement in the active language."""
        if self.read_only_why:
            return self.read_only_why
        until = self.announcement_until
        if until is not None and until <= timezone.now():
            return ""
        return self.announcements.get(get_language() or "") or self.announcement


UNREAD = Site(looking=PublicAccess.MEMBERS, chosen_sign_up=SignUp.CLOSED)
"""The site until the first read succeeds. It is closed, because the real one may be."""
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
    "shows_figures",
    "read_only_why",
    "changed_at",
    "user_count",
    "active_count",
    "item_count",
)
SITE = f"SELECT logo::text, announcements::text, sign_up, {', '.join(COLUMNS)} FROM about_sitesettings"
RULES_IN_FORCE = f"""
    SELECT r.id, r.text FROM about_rule r WHERE r.withdrawn_at IS NULL ORDER BY r.number, r.id LIMIT {RULES}
"""


class SiteCopy:
    """A process's copy of the site."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._site: Site | None = None
        self._until = 0.0

    def get(self) -> Site:
        """The site, read again after `SECONDS`. Only one thread reads it."""
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
        """The last copy, or defaults."""
        return self._site or Site()

    def set(self, site: Site, seconds: float | None = None) -> None:
        """Keep a copy."""
        self._until = time.monotonic() + (SECONDS if seconds is None else seconds)
        self._site = site

    def forget(self) -> None:
        """Make the next `get` read the site again."""
        self._until = 0.0

    def _read(self) -> Site:
        try:
            return read()
        except DatabaseError as error:
            logger.warning("the site's settings could not be read. The last known ones are used: %s", error)
            return self._site or UNREAD


site_copy = SiteCopy()


def last_known() -> Site:
    """The last copy, without any server."""
    return site_copy.last


def current() -> Site:
    """The site, read again after `SECONDS`."""
    return site_copy.get()


def read() -> Site:
    """The site from PostgreSQL."""
    rules = tuple(Rule(key, number, text) for number, (key, text) in enumerate(fetch(RULES_IN_FORCE), 1))
    for logo, announcements, sign_up, *columns in fetch(SITE):
        fields = dict(zip(COLUMNS, columns, strict=True))
        facts = msgspec.json.decode(logo) if logo else None
        news = msgspec.json.decode(announcements)
        return Site(**fields, logo=facts, announcements=news, chosen_sign_up=sign_up, rules=rules)
    return Site(rules=rules)
