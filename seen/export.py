from datetime import datetime
from typing import NamedTuple

import msgspec
from django.utils.translation import gettext as _

from accounts.export import ExportFile
from accounts.models import User
from seen import played
from seen.filter_store import KEPT_MONTHS, FilterKey, StoreUnavailableError, expires_at, month_of
from seen.filters import MonthFilter, parse_stored
from seen.migration import old
from seen.played import PlayedUnavailableError
from seen.store import store


class PlayRow(msgspec.Struct):
    """A played item. An old play has no time."""

    item_id: str
    played_at: datetime | None


class IssuedRow(msgspec.Struct):
    """An issued item."""

    item_id: str


class MonthRow(msgspec.Struct):
    """About how many items were played in a month, and when that is deleted."""

    month: str
    items: int
    kept_until: datetime


class StoredPlays(NamedTuple):
    """Everything stored about a user's plays."""

    plays: list[PlayRow]
    issued: list[IssuedRow]
    months: list[MonthRow]


def files(reader: User, *, now: datetime) -> list[ExportFile]:
    """The files about plays for a user's data export."""
    trouble = ""
    try:
        kept = _read_stored(reader.pk, now)
    except (PlayedUnavailableError, StoreUnavailableError):
        kept, trouble = StoredPlays([], [], []), " " + _("We couldn't read it just now. Try again later.")
    counted = _(
        "About how many items you played each month, and until when we keep that. We can't list them: a Bloom filter "
        "only tells whether you played a given item."
    )
    return [
        ExportFile(
            "plays.jsonl", _("The items you played last. Older plays are counted by month.") + trouble, kept.plays
        ),
        ExportFile("issued.jsonl", _("The items sent to you last, newest first.") + trouble, kept.issued),
        ExportFile("played_months.jsonl", counted + trouble, kept.months),
    ]


def _read_stored(user_id: int, now: datetime) -> StoredPlays:
    """Read everything stored about a user's plays. Reads Redis before the filters, like seen.checker."""
    dated, issued = played.dated_plays(user_id), played.recent_ids(user_id).issued
    this_month = month_of(now)
    shelved = old.keys_of(user_id)
    months = [FilterKey(user_id, month) for month in range(this_month - KEPT_MONTHS, this_month + 1)]
    found = store().read_briefly([*shelved, *months])
    with played.errors():
        before = set(old.plays_outside_filters(user_id, found[: len(shelved)]).tolist())
    undated = sorted(before.difference(play.item_id for play in dated))
    plays = [(play.item_id, play.played_at) for play in dated] + [(item_id, None) for item_id in undated]
    return StoredPlays(
        [PlayRow(str(item_id), played_at) for item_id, played_at in plays],
        [IssuedRow(str(item_id)) for item_id in issued],
        [
            _month(key, month)
            for key, data in zip(months, found[len(shelved) :], strict=True)
            if (month := parse_stored(user_id, data))
        ],
    )


def _month(key: FilterKey, found: MonthFilter) -> MonthRow:
    year, month = divmod(key.month, 12)
    return MonthRow(f"{year}-{month + 1:02}", found.count, expires_at(key))
