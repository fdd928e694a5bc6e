from collections.abc import Iterator
from datetime import datetime

import msgspec
from django.utils.translation import gettext as _

from accounts.export import ExportFile
from accounts.models import User
from timeline.models import ReadingPosition


class PositionRow(msgspec.Struct):
    """Where the user was in home. `left_id`: where the visit before ended."""

    item_id: str
    left_id: str | None
    since: datetime


def files(user: User) -> list[ExportFile]:
    """The timeline's part of a user's data export."""
    return [ExportFile("reading_position.jsonl", _("How far you read your home timeline."), _rows(user))]


def _rows(user: User) -> Iterator[PositionRow]:
    for row in ReadingPosition.objects.filter(reader=user):
        yield PositionRow(str(row.item_id), str(row.left_id) if row.left_id else None, row.updated_at)
