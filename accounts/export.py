"""A user's data as a zip archive. Packages add files by `export_requested`. Server-side cursors read one snapshot, so
memory stays bounded.
"""

import shutil
import tempfile
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from itertools import chain
from typing import IO, Any, NamedTuple, cast

import msgspec
from django.db import connection, transaction
from django.http import FileResponse
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import addresses
from accounts.about.models import NAME
from accounts.about.site import current
from accounts.joining_models import Invitation, Invited
from accounts.models import User
from accounts.signals import export_requested
from accounts.signing_in import places, second_factors
from media.models import MediaFile
from media.store import store
from storage.postgresql import long_statements

SPOOLED_BYTES = 1024 * 1024
"""A larger archive goes to disk."""
LEVEL = 6
MEDIA_AT_ONCE = 500
"""Rows per read."""
ZIP_TYPE = "application/zip"

encode = msgspec.json.Encoder().encode


class ExportFile(NamedTuple):
    """A file of the archive. `rows` become lines of JSON."""

    name: str
    about: str
    """Describes the content to the owner, in their language."""
    rows: Iterable[Any]


class AccountRow(msgspec.Struct):
    """The account."""

    id: str
    username: str
    display_name: str
    bio: str
    fields: list[dict[str, str]]
    email: str
    email_to_be_confirmed: str
    language: str
    time_zone: str
    keeps_history: bool
    is_locked: bool
    is_indexable: bool
    quotable_by: str
    takes_requests: bool
    enter_sends: bool
    post_visibility: str
    post_repliable_by: str
    post_sensitive: bool
    post_language: str
    plays_videos: bool
    hides_suggestions: bool
    text_size: str
    is_big_v: bool
    joined_at: datetime
    was_invited: bool
    last_seen_at: datetime | None


class LoginRow(msgspec.Struct):
    """Where the account is signed in."""

    kind: str
    name: str
    address: str
    since: datetime
    last_seen_at: datetime | None


class FactorRow(msgspec.Struct):
    """A second factor without secrets."""

    kind: str
    name: str
    added_at: datetime
    last_used_at: datetime | None


class MediumRow(msgspec.Struct):
    """A picture or video, its file, and its use."""

    id: str
    file: str
    use: str
    item_id: str | None
    session_id: str | None
    description: str
    uploaded_at: datetime
    is_removed: bool
    """Removed by moderators, so its file is not included."""
    captions: str = ""
    """The captions file in the archive."""


class InvitationRow(msgspec.Struct):
    """An invitation made by the user."""

    code: str
    made_at: datetime
    expires_at: datetime | None
    uses: int
    most_uses: int
    revoked_at: datetime | None


def write_archive(user: User, target: IO[bytes]) -> None:
    """Write everything about `user` into `target`."""
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        if outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        user = User.objects.get(pk=user.pk)  # the first query sets the snapshot's time
        parts: list[Any] = [answer for _receiver, answer in export_requested.send(sender=User, reader=user)]
        files: list[ExportFile] = [
            _account(user),
            *_security(user),
            _media(user),
            _invitations(user),
            *chain.from_iterable(parts),
        ]
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
            counts = [_write(archive, file) for file in files]
            _write_media(archive, user)
            archive.writestr("README.txt", _read_me(user, zip(files, counts, strict=True)))


def archive_response(user: User) -> FileResponse:
    """The archive as a download. A stream could end half-way with status 200, and a slow reader would keep the snapshot
    open, so it is a file first.
    """
    archive = tempfile.SpooledTemporaryFile(max_size=SPOOLED_BYTES)  # noqa: SIM115 (the response closes it)
    try:
        with long_statements():
            write_archive(user, cast("IO[bytes]", archive))
    except BaseException:
        archive.close()
        raise
    size = archive.tell()
    archive.seek(0)
    site = slugify(current().name, allow_unicode=True) or NAME
    name = f"{site}-{user.username}-{timezone.localdate():%Y-%m-%d}.zip"
    response = FileResponse(archive, as_attachment=True, filename=name, content_type=ZIP_TYPE)
    response["Content-Length"] = str(size)
    response["Cache-Control"] = "no-store"
    return response


def _write(archive: zipfile.ZipFile, file: ExportFile) -> int:
    count = 0
    with archive.open(file.name, "w", force_zip64=True) as lines:
        for count, row in enumerate(file.rows, 1):  # noqa: B007 (the last is the count)
            lines.write(encode(row) + b"\n")
    return count


def _account(user: User) -> ExportFile:
    row = AccountRow(
        str(user.pk),
        user.username,
        user.display_name,
        user.bio,
        user.profile_fields,
        user.email,
        addresses.unconfirmed_address(user),
        user.language,
        user.time_zone,
        user.keeps_history,
        user.is_locked,
        user.is_indexable,
        user.quotable_by,
        user.takes_requests,
        user.enter_sends,
        user.post_visibility,
        user.post_repliable_by,
        user.post_sensitive,
        user.post_language,
        user.plays_videos,
        user.hides_suggestions,
        user.text_size,
        user.is_big_v,
        user.date_joined,
        Invited.objects.filter(user=user).exists(),
        user.last_seen_at,
    )
    return ExportFile("account.json", _("Your account."), [row])


def _security(user: User) -> list[ExportFile]:
    signed_in = {"browser": places.sessions(user, None), "program": places.tokens(user), "app": places.apps(user)}
    return [
        ExportFile(
            "logins.jsonl",
            _("The browsers, apps and programs where you're logged in."),
            [
                LoginRow(kind, each.name, each.ip, each.since, each.seen_at)
                for kind, found in signed_in.items()
                for each in found
            ],
        ),
        ExportFile(
            "second_factors.jsonl",
            _("Your authenticator app, passkeys and recovery codes, without their secrets."),
            [
                FactorRow(row.type, str(row), row.created_at, row.last_used_at)
                for row in second_factors.authenticators_of(user)
            ],
        ),
    ]


def _media(user: User) -> ExportFile:
    rows = MediaFile.objects.filter(owner_id=user.pk).order_by("pk").iterator(chunk_size=MEDIA_AT_ONCE)
    return ExportFile(
        "media.jsonl",
        _("Your pictures and videos. The files are in the folder media."),
        (
            MediumRow(
                str(row.pk),
                _media_path(row) if row.ext and not row.hidden_at else "",
                row.use,
                str(row.item_id or "") or None,
                str(row.session_id or "") or None,
                row.description,
                row.created_at,
                row.hidden_at is not None,
                _media_path(row, "vtt") if row.captions and not row.hidden_at else "",
            )
            for row in rows
        ),
    )


def _invitations(user: User) -> ExportFile:
    rows = Invitation.objects.filter(made_by=user).order_by("pk").iterator(chunk_size=MEDIA_AT_ONCE)
    return ExportFile(
        "invitations.jsonl",
        _("The invitations you created."),
        (
            InvitationRow(row.code, row.created_at, row.expires_at, row.uses, row.most_uses, row.revoked_at)
            for row in rows
        ),
    )


def _media_path(row: MediaFile, ext: str = "") -> str:
    return f"media/{row.pk}.{ext or row.ext}"


def _write_media(archive: zipfile.ZipFile, user: User) -> None:
    """Write the user's media into the archive, without hidden ones and those being withdrawn."""
    rows = MediaFile.objects.filter(owner_id=user.pk, hidden_at=None).order_by("pk")
    for row in rows.iterator(chunk_size=MEDIA_AT_ONCE):
        for ending in filter(None, (row.ext, row.captions)):
            with suppress(FileNotFoundError), store().open(f"{row.name}.{ending}") as file:
                path = _media_path(row, "vtt" if ending == row.captions else "")
                member = zipfile.ZipInfo(path, date_time=row.created_at.timetuple()[:6])
                with archive.open(member, "w", force_zip64=True) as copy:
                    shutil.copyfileobj(file, copy)


def _read_me(user: User, files: Iterable[tuple[ExportFile, int]]) -> str:
    now = timezone.localtime()
    about = _("The data of @%(name)s on %(site)s, as of %(date)s (UTC%(offset)s).") % {
        "name": user.username,
        "site": current().name,
        "date": date_format(now, "DATETIME_FORMAT"),
        "offset": f"{now:%z}",
    }
    notes = _(
        "Files ending in .jsonl have one JSON object per line. Times are UTC, ids are decimal strings. Other "
        "people's posts and actions are not included, except private mentions you can see."
    )
    lines = [
        f"{file.name}\n    {file.about} "
        + ngettext("%(count)s entry.", "%(count)s entries.", count)
        % {"count": number_format(count, force_grouping=True)}
        for file, count in files
    ]
    return "\n\n".join([about, notes, *lines]) + "\n"
