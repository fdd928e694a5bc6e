"""Follows, blocks and mutes as CSV, in the columns of Mastodon: reading what a user uploads, and writing their own.

A file may hold anything: it is bounded before it is read, and what cannot be one of these lists is refused with a
sentence for its user. Names are local: `name`, `@name` or `name@host` of this site.
"""

import csv
import io
from collections.abc import Iterator
from enum import StrEnum
from typing import IO

import msgspec
from django.utils.translation import gettext as _

from accounts.models import User
from relations.visibility import is_username
from storage.connections import stream
from web.uploads import LIST_BYTES

BYTES = LIST_BYTES
ROWS = 5_000
"""More than one may follow."""
NAME_LENGTH = 100
"""Of a name that is no user's here, so much is kept to be told."""
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a cell that a spreadsheet takes for a formula."""
ADDRESS = "Account address"


class Kind(StrEnum):
    """The lists that can be imported and exported."""

    FOLLOWS = "follows"
    BLOCKS = "blocks"
    MUTES = "mutes"


HEADERS = {
    Kind.FOLLOWS: [ADDRESS, "Show boosts", "Notify on new posts", "Languages"],
    Kind.BLOCKS: [],
    Kind.MUTES: [ADDRESS, "Hide notifications"],
}
"""The columns by which Mastodon knows a list; its blocks have no header."""
EXPORTS = {
    Kind.FOLLOWS: """
        SELECT u.username, f.reposts FROM relations_follow f JOIN accounts_user u ON u.id = f.followee_id
        WHERE f.follower_id = %(user)s AND u.is_active
            AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = u.id AND b.blocked_id = %(user)s)
        ORDER BY f.id
    """,
    Kind.BLOCKS: """
        SELECT u.username, NULL FROM relations_block b JOIN accounts_user u ON u.id = b.blocked_id
        WHERE b.blocker_id = %(user)s AND u.is_active ORDER BY b.id
    """,
    Kind.MUTES: """
        SELECT u.username, m.notifications FROM relations_mute m JOIN accounts_user u ON u.id = m.muted_id
        WHERE m.muter_id = %(user)s AND u.is_active ORDER BY m.id
    """,
}


class CsvError(ValueError):
    """A file that is no such list; its text is for the user."""


class Line(msgspec.Struct, array_like=True):
    """A row of a list. `name` is a username, or what stands there where that is none of this site (`is_local` false).
    `flag`: whether boosts are shown, or notifications hidden.
    """

    name: str
    is_local: bool
    flag: bool


def read(file: IO[bytes], kind: Kind, host: str) -> list[Line]:
    """The lines of an uploaded list, each name once. Raises CsvError."""
    data = file.read(BYTES + 1)
    if len(data) > BYTES:
        raise CsvError(_("The file is larger than 1 MB."))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CsvError(_("The file is not text in UTF-8.")) from None
    if "\0" in text:
        raise CsvError(_("The file is not text in UTF-8."))
    lines: dict[str, Line] = {}
    flag_at = 1
    try:
        for row in csv.reader(io.StringIO(text, newline=""), strict=True):
            first = row[0].strip() if row else ""
            if not first:
                continue
            if first.removeprefix("#").casefold() == ADDRESS.casefold():
                continue
            line = _line(first, row[flag_at] if len(row) > flag_at else "", host)
            lines.setdefault(line.name.lower(), line)
            if len(lines) > ROWS:
                raise CsvError(_("The file has more than %(rows)d rows.") % {"rows": ROWS})
    except csv.Error:
        raise CsvError(_("The file is not a list of comma-separated values.")) from None
    if not lines:
        raise CsvError(_("The file names nobody."))
    return list(lines.values())


def _line(address: str, flag: str, host: str) -> Line:
    said = address.removeprefix("'").removeprefix("@")
    name, _at, domain = said.partition("@")
    is_local = is_username(name) and domain.lower() in ("", host.lower())
    return Line(name if is_local else said[:NAME_LENGTH], is_local, flag.strip().lower() != "false")


def write(user: User, kind: Kind, host: str, file: IO[bytes]) -> None:
    """Write one of the user's lists, as `read` and Mastodon read it."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    if HEADERS[kind]:
        writer.writerow(HEADERS[kind])
    writer.writerows(_rows(user, kind, host))
    text.detach()


def _rows(user: User, kind: Kind, host: str) -> Iterator[list[str]]:
    for username, flag in stream(EXPORTS[kind], {"user": user.pk}):
        address = _cell(f"{username}@{host}")
        said = "true" if flag else "false"
        yield {
            Kind.FOLLOWS: [address, said, "false", ""],
            Kind.BLOCKS: [address],
            Kind.MUTES: [address, said],
        }[kind]


def _cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULAS) else text
