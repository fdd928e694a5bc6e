from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec
from django.utils.translation import gettext as _

from accounts.export import ExportFile
from accounts.models import User
from notifications.models import PushSubscription, QuietHours, ReadMark, Silenced
from storage import ids
from web.times import Time


class SilencedRow(msgspec.Struct):
    """A hidden kind of notifications."""

    kind: str


class ReadRow(msgspec.Struct):
    """The newest notification that the user has read, by its time."""

    up_to: Time


class PushRow(msgspec.Struct):
    """A browser or app with push notifications, without its secret address and keys."""

    device: str
    server: str
    kinds: list[str]
    policy: str
    words: str
    since: Time


class QuietRow(msgspec.Struct):
    """The hours in which nothing is pushed."""

    begins: int
    ends: int
    time_zone: str


def files(user: User) -> list[ExportFile]:
    """The notifications' part of a user's data export."""
    return [
        ExportFile("read_notifications.jsonl", _("How far you read your notifications."), _read_marks(user)),
        ExportFile(
            "silenced_notifications.jsonl", _("The kinds of notifications you turned off."), _silenced_kinds(user)
        ),
        ExportFile("push_devices.jsonl", _("Your devices that get push notifications."), _devices(user)),
        ExportFile("quiet_hours.jsonl", _("Your quiet hours without push notifications."), _quiet_hours(user)),
    ]


def _silenced_kinds(user: User) -> Iterator[SilencedRow]:
    for kinds in Silenced.objects.filter(user=user).values_list("kinds", flat=True):
        yield from (SilencedRow(kind) for kind in kinds)


def _read_marks(user: User) -> Iterator[ReadRow]:
    for up_to in ReadMark.objects.filter(user=user, up_to__gt=0).values_list("up_to", flat=True):
        yield ReadRow(ids.moment(up_to))


def _devices(user: User) -> Iterator[PushRow]:
    for row in PushSubscription.objects.filter(user=user).order_by("pk"):
        server = urlsplit(row.endpoint).hostname or ""
        yield PushRow(row.user_agent, server, row.kinds, row.policy, row.words, row.created_at)


def _quiet_hours(user: User) -> Iterator[QuietRow]:
    for row in QuietHours.objects.filter(user=user):
        yield QuietRow(row.begins, row.ends, row.time_zone)
