"""Follows, blocks, mutes, lists and followed hashtags as CSV, in the columns of Mastodon, which knows no file of
hashtags: reading what a user uploads, and writing their own.

A file may hold anything: it is bounded before it is read, and what cannot be one of these lists is refused with a
sentence for its user. Spreadsheets of many countries separate cells by `;`, and columns may stand in any order: a file
with a header is read by its names. Names of people are local: `name`, `@name` or `name@host` of this site.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import IO

import msgspec
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from relations.models import TITLE_LENGTH
from relations.rules import followed_tags, may_know_of
from relations.visibility import is_username
from storage.connections import stream
from web.hashtags import canonical_tag
from web.hosts import is_own
from web.uploads import LIST_BYTES

BYTES = LIST_BYTES
ROWS = 5_000
"""More than one may follow."""
NAME_LENGTH = 100
"""Characters that are kept to be told of a name that is no user's here."""
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a cell that a spreadsheet takes for a formula."""
SEPARATORS = (",", ";", "\t")
FIRST, ROWS_LOOKED_AT = 10_000, 20
"""Characters and rows by which the separator is found."""
FALSE = frozenset({"false", "0", "no", "off", "f", "n", "falsch", "faux", "falso", "onwaar", "fałsz", "ложь"})
"""How programs write it, and spreadsheets of some countries."""


class Kind(StrEnum):
    """The files that can be imported and exported."""

    FOLLOWS = "follows"
    BLOCKS = "blocks"
    MUTES = "mutes"
    LISTS = "lists"
    TAGS = "hashtags"


ADDRESS, TITLE, BOOSTS, SILENT = "Account address", "List name", "Show boosts", "Hide notifications"
NOTIFY, LANGUAGES = "Notify on new posts", "Languages"
HASHTAG = "Followed hashtag"
COLUMNS = {
    Kind.FOLLOWS: [ADDRESS, BOOSTS, NOTIFY, LANGUAGES],
    Kind.BLOCKS: [ADDRESS],
    Kind.MUTES: [ADDRESS, SILENT],
    Kind.LISTS: [TITLE, ADDRESS],
    Kind.TAGS: [HASHTAG],
}
"""The columns by which Mastodon knows a file."""
OWN = {
    Kind.FOLLOWS: {BOOSTS, NOTIFY, LANGUAGES},
    Kind.MUTES: {SILENT},
    Kind.LISTS: {TITLE},
    Kind.TAGS: {HASHTAG},
}
"""The columns that no file of another kind has."""
_NAMES = {name.casefold(): name for names in COLUMNS.values() for name in names}
_ADDRESS = re.compile(r"[\w.+-]+@[^\s@/:]+(?::\d+)?")
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
    Kind.TAGS: followed_tags("%(user)s", "g.name, NULL") + " ORDER BY h.id",
}


FAULTS = {
    "rows": _("The file has more than %(rows)d rows.") % {"rows": ROWS},
    "large": _("The file is larger than 1 MB."),
    "text": _("The file is not text in UTF-8."),
    "format": _("The file is not a list of comma-separated values."),
    "empty": _("There are no names in the file."),
    "names": _("No row of the file names an account."),
    "no_hashtags": _("No row of the file is a hashtag."),
    "columns": _("The file lacks a column that this list needs: its first row names others."),
    "follows": _("By its first row, this is a file of people you follow. Choose that, or another file."),
    "mutes": _("By its first row, this is a file of people you mute. Choose that, or another file."),
    "lists": _("By its first row, this is a file of your lists. Choose that, or another file."),
    "hashtags": _("By its first row, this is a file of hashtags you follow. Choose that, or another file."),
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
    """A row of a file. `name` is a username, or what stands there where that is none of this site (`is_local` false);
    in a file of hashtags one of these, or what is none. `flag`: whether boosts are shown, or notifications hidden.
    `title` is a list's.
    """

    name: str
    is_local: bool
    flag: bool
    title: str = ""


# --- Reading ---------------------------------------------------------------------------------------------
def read(file: IO[bytes], kind: Kind, host: str = "") -> list[Line]:
    """The lines of an uploaded file, each once. Users are of this site under `host` too. Raises CsvError."""
    text = _text(file)
    separator, begin = _separator(text, kind)
    lines: dict[tuple[str, str], Line] = {}
    columns = {name: place for place, name in enumerate(COLUMNS[kind])}
    is_understood = False
    for row in cells(io.StringIO(text[begin:], newline=""), _refuse, separator):
        if found := _header(row):
            _check(found, kind)
            columns = found
            continue
        cell = _Row(row, columns)
        if not cell.cell(HASHTAG if kind == Kind.TAGS else ADDRESS):
            continue
        line = _line(cell, kind, host)
        is_understood = is_understood or _is_understood(line, kind)
        lines.setdefault((line.title, line.name.lower()), line)
        if len(lines) > ROWS:
            raise CsvError("rows")
    if not lines:
        raise CsvError("empty")
    if not is_understood:
        raise CsvError("no_hashtags" if kind == Kind.TAGS else "names")
    return list(lines.values())


def cells(lines: Iterable[str], refuse: Callable[[csv.Error], None], separator: str = ",") -> Iterator[list[str]]:
    """The rows of a CSV file. The error of a row that cannot be read goes to `refuse`; then the next row is read."""
    reader = csv.reader(lines, strict=True, delimiter=separator)
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


def _separator(text: str, kind: Kind) -> tuple[str, int]:
    """What separates the cells, and where the rows begin: Excel writes a line `sep=;` before them.

    It is the one by which the first rows have most of the names of columns, or an account in its place.
    """
    if said := _SAID.match(text):
        return said[1], said.end()
    first = text[:FIRST].splitlines()[:ROWS_LOOKED_AT]
    return max(SEPARATORS, key=lambda separator: sum(_worth(line, separator, kind) for line in first)), 0


_SAID = re.compile(r"sep=([,;\t])[\r\n]+", re.IGNORECASE)


def _worth(first: str, separator: str, kind: Kind) -> int:
    try:
        row = next(csv.reader([first], delimiter=separator), [])
    except csv.Error:
        return 0
    if known := sum(_plain(cell) in _NAMES for cell in row):
        return known
    line = _line(_Row(row, {name: place for place, name in enumerate(COLUMNS[kind])}), kind, "")
    return int(_is_understood(line, kind))


def _is_understood(line: Line, kind: Kind) -> bool:
    """Whether a row names what the file is to list, of this site or another."""
    return line.is_local or (kind != Kind.TAGS and _ADDRESS.fullmatch(line.name) is not None)


def _header(row: Sequence[str]) -> dict[str, int]:
    """Where each known column stands, by its name; nothing for a row that is no header."""
    found = {_NAMES[name]: place for place, name in enumerate(map(_plain, row)) if name in _NAMES}
    is_first = _plain(row[0]) in (TITLE.casefold(), HASHTAG.casefold()) if row else False
    return found if ADDRESS in found or len(found) > 1 or is_first else {}


def _check(header: Mapping[str, int], kind: Kind) -> None:
    """Refuse the header of a file of another kind, and one without the columns that this kind needs."""
    kinds = [other for other, own in OWN.items() if own & header.keys()]
    if kinds and kind not in kinds:
        raise CsvError(kinds[0])
    needed = {Kind.LISTS: {ADDRESS, TITLE}, Kind.TAGS: {HASHTAG}}.get(kind, {ADDRESS})
    if not needed <= header.keys():
        raise CsvError("columns")


def _plain(name: str) -> str:
    """The name of a column as it is compared."""
    return " ".join(name.split()).removeprefix("#").casefold()


class _Row:
    """A row whose cells are asked for by the names of their columns."""

    def __init__(self, cells: Sequence[str], places: Mapping[str, int]) -> None:
        self._cells, self._places = cells, places

    def cell(self, column: str) -> str:
        """The cell, "" where the row has none."""
        place = self._places.get(column, len(self._cells))
        return self._cells[place].strip() if place < len(self._cells) else ""


def _line(row: _Row, kind: Kind, host: str) -> Line:
    if kind == Kind.TAGS:
        said = row.cell(HASHTAG)
        tag = canonical_tag(said.removeprefix("#"))
        return Line(tag or said[:NAME_LENGTH], tag is not None, flag=True)
    said = row.cell(ADDRESS).removeprefix("'").removeprefix("@")
    name, _at, domain = said.partition("@")
    is_local = is_username(name) and (domain.lower() in ("", host.lower()) or is_own(domain))
    flag = FALSE.isdisjoint({row.cell(BOOSTS).casefold(), row.cell(SILENT).casefold()})
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
            Kind.TAGS: [f"#{username}"],
        }[kind]


def _cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULAS) else text


def _uncelled(text: str) -> str:
    """The text of such a cell."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULAS) else text
