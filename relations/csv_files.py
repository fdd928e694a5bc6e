"""Import and export of follows, blocks, mutes, lists and followed hashtags as CSV.

The columns are Mastodon's, except for hashtags, in any order if there is a header; `;` may separate them. Names are
local: `name`, `@name` or `name@host` of this site.
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

from accounts.models import User, is_username
from relations.models import TITLE_LENGTH
from relations.rules import followed_tags, may_know_of
from storage.connections import stream
from web.hashtags import canonical_tag
from web.hosts import is_own

BYTES = 1 << 20
"""The most bytes of a file."""
ROWS = 5_000
"""Most rows of a file. It is more than the follow cap."""
NAME_LENGTH = 100
"""Characters kept of a name that is no local user, for the report."""
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of cells that spreadsheets take for formulas."""
SEPARATORS = (",", ";", "\t")
FIRST, ROWS_LOOKED_AT = 10_000, 20
"""Characters and rows used to find the separator."""
FALSE = frozenset({"false", "0", "no", "off", "f", "n", "falsch", "faux", "falso", "onwaar", "fałsz", "ложь"})
"""Words for false, as programs write them, and spreadsheets in some countries."""


class CsvKind(StrEnum):
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
    CsvKind.FOLLOWS: [ADDRESS, BOOSTS, NOTIFY, LANGUAGES],
    CsvKind.BLOCKS: [ADDRESS],
    CsvKind.MUTES: [ADDRESS, SILENT],
    CsvKind.LISTS: [TITLE, ADDRESS],
    CsvKind.TAGS: [HASHTAG],
}
"""The columns of Mastodon's files."""
OWN = {
    CsvKind.FOLLOWS: {BOOSTS, NOTIFY, LANGUAGES},
    CsvKind.MUTES: {SILENT},
    CsvKind.LISTS: {TITLE},
    CsvKind.TAGS: {HASHTAG},
}
"""Columns that only this kind of file has."""
_NAMES = {name.casefold(): name for names in COLUMNS.values() for name in names}
_ADDRESS = re.compile(r"[\w.+-]+@[^\s@/:]+(?::\d+)?")
WITHOUT_HEADER = frozenset({CsvKind.BLOCKS, CsvKind.LISTS})
"""Mastodon writes these files without a header."""
KNOWN = may_know_of("u", "%(user)s", is_probe=False)
# Blocked and muted users are named even if they block the user, who knew them before.
EXPORTS = {
    CsvKind.FOLLOWS: f"""
        SELECT u.username, f.reposts, coalesce(f.bell, false)
        FROM relations_follow f JOIN accounts_user u ON u.id = f.followee_id
        WHERE f.follower_id = %(user)s AND {KNOWN}
        ORDER BY f.id
    """,
    CsvKind.BLOCKS: """
        SELECT u.username, NULL, NULL FROM relations_block b JOIN accounts_user u ON u.id = b.blocked_id
        WHERE b.blocker_id = %(user)s AND u.is_active ORDER BY b.id
    """,
    CsvKind.MUTES: """
        SELECT u.username, m.notifications, NULL FROM relations_mute m JOIN accounts_user u ON u.id = m.muted_id
        WHERE m.muter_id = %(user)s AND u.is_active ORDER BY m.id
    """,
    CsvKind.LISTS: f"""
        SELECT u.username, l.title, NULL FROM relations_list l JOIN relations_listmember m ON m.list_id = l.id
        JOIN accounts_user u ON u.id = m.member_id
        WHERE l.owner_id = %(user)s AND {KNOWN}
        ORDER BY l.id, m.id
    """,
    CsvKind.TAGS: followed_tags("%(user)s", "g.name, NULL, NULL") + " ORDER BY h.id",
}


FAULTS = {
    "rows": _("The file has more than 5,000 rows. Split it."),
    "large": _("The file is larger than 1 MB. Split it."),
    "text": _("Save the file as UTF-8 text."),
    "format": _("This isn't a CSV file."),
    "empty": _("The file has no names."),
    "names": _("The file has no accounts."),
    "no_hashtags": _("The file has no hashtags."),
    "columns": _("A column is missing. Check the names in the first row."),
    "follows": _("This looks like a list of people you follow. Choose that kind, or another file."),
    "mutes": _("This looks like a list of people you mute. Choose that kind, or another file."),
    "lists": _("This looks like a file of your lists. Choose that kind, or another file."),
    "hashtags": _("This looks like a list of hashtags you follow. Choose that kind, or another file."),
}
"""Why a file is refused."""


class CsvError(ValueError):
    """The file cannot be imported. `why`: a key of `FAULTS`."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return str(FAULTS[self.why])


class CsvLine(msgspec.Struct, array_like=True):
    """A row of a file. `name` is a local username or canonical tag if `is_local`, else the cell's text. `flag`: boosts
    shown, or notifications hidden. `bell`: notified of each post. None: the file does not say.
    """

    name: str
    is_local: bool
    flag: bool
    title: str = ""
    bell: bool | None = None


# --- Reading ---------------------------------------------------------------------------------------------
def read(file: IO[bytes], kind: CsvKind, host: str = "") -> list[CsvLine]:
    """The lines of a file. `host` counts as this site too. Raises CsvError."""
    text = _read_text(file)
    separator, begin = _separator(text, kind)
    lines: dict[tuple[str, str], CsvLine] = {}
    columns = {name: place for place, name in enumerate(COLUMNS[kind])}
    is_understood = False
    for row in read_rows(io.StringIO(text[begin:], newline=""), _raise_format_error, separator):
        if found := _header(row):
            _check_columns(found, kind)
            columns = found
            continue
        cell = _CsvRow(row, columns)
        if not cell.cell(HASHTAG if kind == CsvKind.TAGS else ADDRESS):
            continue
        line = _line(cell, kind, host)
        is_understood = is_understood or _is_understood(line, kind)
        lines.setdefault((line.title, line.name.lower()), line)
        if len(lines) > ROWS:
            raise CsvError("rows")
    if not lines:
        raise CsvError("empty")
    if not is_understood:
        raise CsvError("no_hashtags" if kind == CsvKind.TAGS else "names")
    return list(lines.values())


def read_rows(lines: Iterable[str], refuse: Callable[[csv.Error], None], separator: str = ",") -> Iterator[list[str]]:
    """The rows. Broken ones go to `refuse`."""
    reader = csv.reader(lines, strict=True, delimiter=separator)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            refuse(error)


def _raise_format_error(error: csv.Error) -> None:
    raise CsvError("format") from error


def _read_text(file: IO[bytes]) -> str:
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


def _separator(text: str, kind: CsvKind) -> tuple[str, int]:
    """The separator that fits best, and where the rows begin. Excel may write `sep=;` first."""
    if said := _SAID.match(text):
        return said[1], said.end()
    first = text[:FIRST].splitlines()[:ROWS_LOOKED_AT]
    return max(SEPARATORS, key=lambda separator: sum(_separator_score(line, separator, kind) for line in first)), 0


_SAID = re.compile(r"sep=([,;\t])[\r\n]+", re.IGNORECASE)


def _separator_score(first: str, separator: str, kind: CsvKind) -> int:
    try:
        row = next(csv.reader([first], delimiter=separator), [])
    except csv.Error:
        return 0
    if known := sum(_normalised_name(cell) in _NAMES for cell in row):
        return known
    line = _line(_CsvRow(row, {name: place for place, name in enumerate(COLUMNS[kind])}), kind, "")
    return int(_is_understood(line, kind))


def _is_understood(line: CsvLine, kind: CsvKind) -> bool:
    return line.is_local or (kind != CsvKind.TAGS and _ADDRESS.fullmatch(line.name) is not None)


def _header(row: Sequence[str]) -> dict[str, int]:
    found = {_NAMES[name]: place for place, name in enumerate(map(_normalised_name, row)) if name in _NAMES}
    is_first = _normalised_name(row[0]) in (TITLE.casefold(), HASHTAG.casefold()) if row else False
    return found if ADDRESS in found or len(found) > 1 or is_first else {}


def _check_columns(header: Mapping[str, int], kind: CsvKind) -> None:
    kinds = [other for other, own in OWN.items() if own & header.keys()]
    if kinds and kind not in kinds:
        raise CsvError(kinds[0])
    needed = {CsvKind.LISTS: {ADDRESS, TITLE}, CsvKind.TAGS: {HASHTAG}}.get(kind, {ADDRESS})
    if not needed <= header.keys():
        raise CsvError("columns")


def _normalised_name(name: str) -> str:
    return " ".join(name.split()).removeprefix("#").casefold()


class _CsvRow:
    def __init__(self, cells: Sequence[str], places: Mapping[str, int]) -> None:
        self._cells, self._places = cells, places

    def cell(self, column: str) -> str:
        place = self._places.get(column, len(self._cells))
        return self._cells[place].strip() if place < len(self._cells) else ""


def _line(row: _CsvRow, kind: CsvKind, host: str) -> CsvLine:
    if kind == CsvKind.TAGS:
        said = row.cell(HASHTAG)
        tag = canonical_tag(said.removeprefix("#"))
        return CsvLine(tag or said[:NAME_LENGTH], tag is not None, flag=True)
    said = row.cell(ADDRESS).removeprefix("'").removeprefix("@")
    name, _at, domain = said.partition("@")
    is_local = is_username(name) and (domain.lower() in ("", host.lower()) or is_own(domain))
    flag = FALSE.isdisjoint({row.cell(BOOSTS).casefold(), row.cell(SILENT).casefold()})
    title = " ".join(_unescape_cell(row.cell(TITLE)).split())
    notify = row.cell(NOTIFY).casefold()
    bell = notify not in FALSE if notify else None
    return CsvLine(name if is_local else said[:NAME_LENGTH], is_local, flag, title[: TITLE_LENGTH + 1], bell)


# --- Writing ---------------------------------------------------------------------------------------------
def write(user: User, kind: CsvKind, host: str, file: IO[bytes]) -> None:
    """Write one of the user's lists, in Mastodon's format."""
    header = [] if kind in WITHOUT_HEADER else [COLUMNS[kind]]
    write_rows(chain(header, _rows(user, kind, host)), file)


def write_rows(rows: Iterable[Sequence[str]], file: IO[bytes]) -> None:
    """Append rows to a file."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    csv.writer(text).writerows([_escape_cell(cell) for cell in row] for row in rows)
    text.detach()


def _rows(user: User, kind: CsvKind, host: str) -> Iterator[list[str]]:
    for username, fact, bell in stream(EXPORTS[kind], {"user": user.pk}):
        address = f"{username}@{host}"
        said = "true" if fact else "false"
        yield {
            CsvKind.FOLLOWS: [address, said, "true" if bell else "false", ""],
            CsvKind.BLOCKS: [address],
            CsvKind.MUTES: [address, said],
            CsvKind.LISTS: [fact, address],
            CsvKind.TAGS: [f"#{username}"],
        }[kind]


def _escape_cell(text: str) -> str:
    """A cell, after an apostrophe if a spreadsheet would read a formula."""
    return f"'{text}" if text.startswith(FORMULAS) else text


def _unescape_cell(text: str) -> str:
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULAS) else text
