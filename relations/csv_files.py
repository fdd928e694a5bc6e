"""Follows, blocks, mutes and lists as CSV, in the columns of Mastodon: reading what a user uploads, and writing their
own.

A file may hold anything: it is bounded before it is read, and what cannot be one of these lists is refused with a
sentence for its user. Names are local: `name`, `@name` or `name@host` of this site.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain
from typing import IO

import msgspec
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from relations.models import TITLE_LENGTH
from relations.rules import may_know_of
from relations.visibility import is_username
from storage.connections import stream
from web.hosts import is_own
from web.uploads import LIST_BYTES

BYTES = LIST_BYTES
ROWS = 5_000
"""More than one may follow."""
NAME_LENGTH = 100
"""Characters that are kept to be told of a name that is no user's here."""
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a cell that a spreadsheet takes for a formula."""


class Kind(StrEnum):
    """The files that can be imported and exported."""

    FOLLOWS = "follows"
    BLOCKS = "blocks"
    MUTES = "mutes"
    LISTS = "lists"


ADDRESS, TITLE, BOOSTS, SILENT = "Account address", "List name", "Show boosts", "Hide notifications"
COLUMNS = {
    Kind.FOLLOWS: [ADDRESS, BOOSTS, "Notify on new posts", "Languages"],
    Kind.BLOCKS: [ADDRESS],
    Kind.MUTES: [ADDRESS, SILENT],
    Kind.LISTS: [TITLE, ADDRESS],
}
"""The columns by which Mastodon knows a file."""
WITHOUT_HEADER = frozenset({Kind.BLOCKS, Kind.LISTS})
"""The files that Mastodon writes without a header."""
KNOWN = may_know_of("u", "%(user)s", is_probe=False)
# Users whom one turned away are named also where they block the user: the user named them before.
EXPORTS = {
    Kind.FOLLOWS: f"""
        SELECT u.username, f.reposts FROM relations_follow f JOIN accounts_user u ON u.id = f.followee_id
        WHERE f.follower_id = %(user)s AND {KNOWN}
        ORDER BY f.id
    """,  # noqa: S608 (constants)
    Kind.BLOCKS: """
        SELECT u.username, NULL FROM relations_block b JOIN accounts_user u ON u.id = b.blocked_id
        WHERE b.blocker_id = %(user)s AND u.is_active ORDER BY b.id
    """,
    Kind.MUTES: """
        SELECT u.username, m.notifications FROM relations_mute m JOIN accounts_user u ON u.id = m.muted_id
        WHERE m.muter_id = %(user)s AND u.is_active ORDER BY m.id
    """,
    Kind.LISTS: f"""
        SELECT u.username, l.title FROM relations_list l JOIN relations_listmember m ON m.list_id = l.id
        JOIN accounts_user u ON u.id = m.member_id
        WHERE l.owner_id = %(user)s AND {KNOWN}
        ORDER BY l.id, m.id
    """,  # noqa: S608 (constants)
}


FAULTS = {
    "rows": _("The file has more than %(rows)d rows.") % {"rows": ROWS},
    "large": _("The file is larger than 1 MB."),
    "text": _("The file is not text in UTF-8."),
    "format": _("The file is not a list of comma-separated values."),
    "empty": _("There are no names in the file."),
}
"""Why a file is no such list."""


class CsvError(ValueError):
    """A file that is no such list: `why` is a key of `FAULTS`, and its text is for the user."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return str(FAULTS[self.why])


class Line(msgspec.Struct, array_like=True):
    """A row of a file. `name` is a username, or what stands there where that is none of this site (`is_local` false).
    `flag`: whether boosts are shown, or notifications hidden. `title` is a list's.
    """

    name: str
    is_local: bool
    flag: bool
    title: str = ""


# --- Reading ---------------------------------------------------------------------------------------------
def read(file: IO[bytes], kind: Kind, host: str = "") -> list[Line]:
    """The lines of an uploaded file, each once. Users are of this site under `host` too. Raises CsvError."""
    lines: dict[tuple[str, str], Line] = {}
    columns = _places(COLUMNS[kind])
    for row in cells(io.StringIO(_text(file), newline=""), _refuse):
        if not row or not row[0].strip():
            continue
        if row[0].strip().removeprefix("#").casefold() in (ADDRESS.casefold(), TITLE.casefold()):
            columns = _places(row)
            continue
        line = _line(_Row(row, columns), host)
        lines.setdefault((line.title, line.name.lower()), line)
        if len(lines) > ROWS:
            raise CsvError("rows")
    if not lines:
        raise CsvError("empty")
    return list(lines.values())


def cells(lines: Iterable[str], refuse: Callable[[csv.Error], None]) -> Iterator[list[str]]:
    """The rows of a CSV file. The error of a row that cannot be read goes to `refuse`; then the next row is read."""
    reader = csv.reader(lines, strict=True)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            refuse(error)


def _refuse(error: csv.Error) -> None:
    raise CsvError("format") from error


def _text(file: IO[bytes]) -> str:
    data = file.read(BYTES + 1)
    if len(data) > BYTES:
        raise CsvError("large")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CsvError("text") from None
    if "\0" in text:
        raise CsvError("text")
    return text


def _places(header: Iterable[str]) -> dict[str, int]:
    """Where each column stands, by its name in lower case."""
    return {name.strip().removeprefix("#").casefold(): place for place, name in enumerate(header)}


class _Row:
    """A row whose cells are asked for by the names of their columns."""

    def __init__(self, cells: Sequence[str], places: dict[str, int]) -> None:
        self._cells, self._places = cells, places

    def cell(self, column: str) -> str:
        """The cell, "" where the row has none."""
        place = self._places.get(column.casefold(), len(self._cells))
        return self._cells[place].strip() if place < len(self._cells) else ""


def _line(row: _Row, host: str) -> Line:
    said = row.cell(ADDRESS).removeprefix("'").removeprefix("@")
    name, _at, domain = said.partition("@")
    is_local = is_username(name) and (domain.lower() in ("", host.lower()) or is_own(domain))
    flag = "false" not in (row.cell(BOOSTS).lower(), row.cell(SILENT).lower())
    title = " ".join(_uncelled(row.cell(TITLE)).split())
    return Line(name if is_local else said[:NAME_LENGTH], is_local, flag, title[: TITLE_LENGTH + 1])


# --- Writing ---------------------------------------------------------------------------------------------
def write(user: User, kind: Kind, host: str, file: IO[bytes]) -> None:
    """Write one of the user's lists, as `read` and Mastodon read it."""
    header = [] if kind in WITHOUT_HEADER else [COLUMNS[kind]]
    write_rows(chain(header, _rows(user, kind, host)), file)


def write_rows(rows: Iterable[Sequence[str]], file: IO[bytes]) -> None:
    """Add these rows to a file."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    csv.writer(text).writerows([_cell(cell) for cell in row] for row in rows)
    text.detach()


def _rows(user: User, kind: Kind, host: str) -> Iterator[list[str]]:
    for username, fact in stream(EXPORTS[kind], {"user": user.pk}):
        address = f"{username}@{host}"
        said = "true" if fact else "false"
        yield {
            Kind.FOLLOWS: [address, said, "false", ""],
            Kind.BLOCKS: [address],
            Kind.MUTES: [address, said],
            Kind.LISTS: [fact, address],
        }[kind]


def _cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULAS) else text


def _uncelled(text: str) -> str:
    """The text of such a cell."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULAS) else text
