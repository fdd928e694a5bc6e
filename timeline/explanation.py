"""An explained home: what timeline.explain finds out, with the sentences that tell it in the reader's language."""

from datetime import datetime
from typing import Any

import msgspec
from django.utils.translation import gettext_lazy as _

from accounts.models import Level
from timeline.truth import Missed

REASONS: dict[str, Any] = {
    "absent": _("There is no such item."),
    "status": _("It is not published."),
    "reply": _("It is a reply; homes show none."),
    "self": _("Only its sender sees it."),
    "original": _("It reposts an item that the reader may not see."),
    "original_muted": _("It reposts an item of a sender that the reader mutes."),
    "not_followed": _("The reader does not follow its sender."),
    "blocked": _("The reader blocks its sender."),
    "blocked_by": _("Its sender blocks the reader."),
    "muted": _("The reader mutes its sender."),
    "exclusive": _("Its sender is in an exclusive list of the reader's."),
    "reposts_left_out": _("The reader leaves out what its sender reposts."),
    "inactive": _("Its sender is suspended or deactivated."),
    "mutuals": _("It is for mutual follows, and its sender does not follow the reader."),
    "folded": _(
        "It is folded into the item itself, which stands close below it, or into the next newer repost of the same"
        " item, which may be folded itself."
    ),
}
"""Why an item is not shown."""
STATES: dict[str, Any] = {
    "in_use": _("in use"),
    "no_generation": _("not used: the policy has no generation yet, after a failover of PostgreSQL"),
    "dormant": _("none: dormant readers have no inbox"),
    "few_followees": _("none: with so few followees the policy gives no inbox, and one pull serves every page"),
    "unavailable": _("not known: Redis does not answer"),
    "missing": _("missing: the next page that wants it has it built"),
    "building": _("under construction"),
    "no_floor": _("not used: it has no floor"),
    "other_run": _("not used: it was built in another run of the Redis server"),
    "other_epoch": _("not used: it was built for another epoch or policy"),
}
"""The worth of a window, by its state."""
WHYS: dict[str, Any] = {
    "": _("The windows have all of it."),
    Missed.DORMANT: _("The reader has no inbox, so one pull serves it."),
    Missed.FEW: _("The reader follows so few that the policy gives no inbox, so one pull serves it."),
    Missed.OUTBOXES: _("So many outboxes would be merged that one pull costs less, so PostgreSQL serves it."),
    Missed.MISSING: _("A window that it needs cannot be used, so PostgreSQL serves it."),
    Missed.FLOOR: _("It reaches below the floor of a window, so PostgreSQL serves it."),
    Missed.HIDDEN: _("Most of what the windows hold may not be seen just now, so PostgreSQL serves it."),
    Missed.REDIS: _("Redis does not answer, so PostgreSQL serves it."),
}
"""Why a page comes from where it comes, by truth.Missed; "": they sufficed."""
PLACES: dict[str, Any] = {
    "pending": _("Its fan-out is not complete; pages add it from the table of deliveries."),
    "inbox": _("The inbox holds it."),
    "outbox": _("The outbox of its sender holds it, and pages merge that."),
    "sql": _("PostgreSQL serves it: it lies at or below a floor, or a window that it needs is not used."),
    "lost": _("The windows should hold it and do not: `manage.py timeline_check --repair` mends that."),
}
"""Where pages find an item that is shown."""
MERGING: dict[str, Any] = {
    "merged": _("Pages merge them into the inbox."),
    "pushed": _("Pages do not merge them: the inbox takes the pushes of these senders."),
    "unused": _("Pages do not merge them: no inbox is used, so PostgreSQL serves the page."),
}
"""Whether pages merge the outboxes of the followed big-Vs, and why not."""


class Window(msgspec.Struct):
    """A window as it stands. Without a key all but `state` is None."""

    key: str
    state: str
    """One of STATES."""
    entries: int | None = None
    floor: str | None = None
    """An id; None while the window is under construction."""
    epoch: int | None = None
    expected_epoch: int | None = None
    is_of_this_run: bool | None = None
    pushes: int | None = None
    """The push generation under which an inbox takes big-Vs' pushes; 0: none."""
    bytes: int | None = None
    """By MEMORY USAGE."""
    seconds_to_live: int | None = None

    @property
    def about(self) -> Any:
        """The window's state as a sentence, in the reader's language."""
        return STATES[self.state]


class Box(msgspec.Struct):
    """The outbox of a followed big-V."""

    user_id: str
    username: str
    outbox: Window


class Reader(msgspec.Struct):
    """The reader whose home is explained. `following` counts followees."""

    id: str
    username: str
    is_active: bool
    level: int
    last_seen_at: datetime | None
    following: int
    push_generation: int
    """0: the level takes no pushes from big-Vs."""

    @property
    def level_name(self) -> Any:
        """The level's name, in the reader's language."""
        return Level(self.level).label


class Policy(msgspec.Struct):
    """The rules of pushing: the levels that take pushes, and the number of followees from which there is an inbox."""

    push_level: int
    inbox_from: int
    generation: int | None


class NextPage(msgspec.Struct):
    """The next first page: its sources, and its cost as the median of `explain.RUNS` that are made."""

    sources: list[str]
    """The sources of the page, as in the header X-Feed-Source."""
    missed: str
    """One of WHYS."""
    items: int
    statements: int
    round_trips: int
    milliseconds: float
    """The median."""

    @property
    def about(self) -> Any:
        """The reason why the windows cannot serve the page, as a sentence."""
        return WHYS[self.missed]


class ItemVerdict(msgspec.Struct):
    """Whether the reader's home shows an item, and why (not)."""

    id: str
    is_shown: bool
    reasons: list[str]
    """Why not: of REASONS."""
    status: str | None = None
    visibility: str | None = None
    sender: str | None = None
    repost_of: str | None = None
    folded_into: str | None = None
    stands_for: int = 0
    """The number of other reposts that are folded into it."""
    place: str | None = None
    """Where pages find it, of PLACES; None where it is not shown."""
    is_pending: bool = False
    is_parked: bool = False
    in_inbox: bool | None = None
    """None: not known."""
    in_outbox: bool | None = None
    is_above_floor: bool | None = None
    """Whether the item is above the inbox's floor; None while the inbox is not used."""

    @property
    def about(self) -> list[Any]:
        """The reasons of the verdict, as sentences."""
        return [REASONS[reason] for reason in self.reasons]

    @property
    def about_place(self) -> Any:
        """Where the item stands in the reader's windows, as a sentence; empty if nowhere."""
        return PLACES[self.place] if self.place else ""


class Explanation(msgspec.Struct):
    """An explained home: the reader, the policy, the windows, and the next page's source."""

    reader: Reader
    policy: Policy
    inbox: Window
    merging: str
    """Whether pages merge the outboxes of the followed big-Vs: one of MERGING."""
    big_vs: int
    outboxes: list[Box]
    """The first `explain.SHOWN` of them."""
    pending: int
    """Items whose fan-out is not complete and that pages add."""
    is_pending_capped: bool
    """Whether there are more pending items than the newest settings.PENDING_CAP of the site, which were looked at."""
    pending_items: list[str]
    parked: int
    next_page: NextPage
    item: ItemVerdict | None = None

    @property
    def about_merging(self) -> Any:
        """Whether pages merge outboxes, and why, as a sentence."""
        return MERGING[self.merging]
