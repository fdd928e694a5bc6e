"""The notifications' part of a user's data export: the hidden kinds."""

from collections.abc import Iterator

import msgspec
from django.utils.translation import gettext as _

from accounts.export import ExportFile
from accounts.models import User
from notifications.models import Silenced


class SilencedRow(msgspec.Struct):
    """A hidden kind of notifications."""

    kind: str


def files(user: User) -> list[ExportFile]:
    """The notifications' part of a user's data export."""
    return [ExportFile("silenced_notifications.jsonl", _("The kinds of notifications that you left out."), _rows(user))]


def _rows(user: User) -> Iterator[SilencedRow]:
    for kinds in Silenced.objects.filter(user=user).values_list("kinds", flat=True):
        yield from (SilencedRow(kind) for kind in kinds)
