"""The notifications' part of a user's own data: the kinds that they left out."""

from collections.abc import Iterator

import msgspec
from django.utils.translation import gettext as _

from accounts.export import ExportFile
from accounts.models import User
from notifications.models import Silenced


class SilencedRow(msgspec.Struct):
    """A kind of notifications that the user is not shown."""

    kind: str


def files(user: User) -> list[ExportFile]:
    """The files of a user's own data: the kinds of notifications that they are not shown."""
    return [ExportFile("silenced_notifications.jsonl", _("The kinds of notifications that you left out."), _rows(user))]


def _rows(user: User) -> Iterator[SilencedRow]:
    for kinds in Silenced.objects.filter(user=user).values_list("kinds", flat=True):
        yield from (SilencedRow(kind) for kind in kinds)
