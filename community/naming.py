"""Usernames for a data set: its own, or valid ones made of them (community.names).

A file remembers each id's name, so that later runs give the same, also with more rows.
"""

import csv
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from accounts.joining.actions import unavailable
from accounts.joining.lookalikes import skeleton
from community.dataset import Dataset, UserRow
from community.names import candidates, display_name, is_permitted
from community.problems import DatasetError
from storage.connections import fetch

CHUNK = 5_000
"""Names per query."""
COLUMNS = ("id", "name", "username", "display_name")
LOADED = """
    SELECT i.original_id, lower(u.username), u.display_name
    FROM timeline_importeduser i JOIN accounts_user u ON u.id = i.user_id WHERE i.original_id = ANY(%s)
"""


class Named(NamedTuple):
    """A user with their names here."""

    row: UserRow
    username: str
    display_name: str


@dataclass
class Naming:
    """The data set's names, or valid ones if `is_mapped`."""

    is_mapped: bool = False
    file: Path | None = None
    _remembered: dict[int, str] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)

    def name(self, dataset: Dataset, users: list[UserRow]) -> list[Named]:
        """Name the users. Refused ones go to `Dataset.tell`. Raises DatasetError."""
        self._remembered = _read(self.file) if self.file and self.is_mapped else {}
        self._used = {form for name in self._remembered.values() for form in _forms(name)}
        named = self._mapped if self.is_mapped else self._own
        chunks = (users[start : start + CHUNK] for start in range(0, len(users), CHUNK))
        return [one for chunk in chunks for one in named(dataset, chunk)]

    def remember(self, named: Sequence[Named]) -> None:
        """Write the file of names atomically. Raises OSError."""
        if self.file is None:
            return
        draft = self.file.with_name(f"{self.file.name}.part")
        with draft.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(COLUMNS)
            rows.writerows((one.row.id, one.row.name, one.username, one.display_name or one.username) for one in named)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.file)

    def _own(self, dataset: Dataset, users: list[UserRow]) -> Iterator[Named]:
        taken = unavailable([row.name for row in users if is_permitted(row.name)])
        for row in users:
            if not is_permitted(row.name):
                what = f"the name {row.name[:50]!r} is not permitted (--names map changes it)"
                dataset.tell(dataset.wrong_user(row.line, what, "not permitted", "name"))
            elif row.name.lower() in self._used:
                what = f"the name {row.name} is also in an earlier line"
                dataset.tell(dataset.wrong_user(row.line, what, "repeated", "name"))
            elif taken.get(row.name) == "unique":
                what = f"another user has the name {row.name}"
                dataset.tell(dataset.wrong_user(row.line, what, "taken", "name"))
            else:
                yield Named(row, row.name, "")
            self._used.add(row.name.lower())

    def _mapped(self, dataset: Dataset, users: list[UserRow]) -> Iterator[Named]:
        asked = {name for row in users for name in self._first(row)}
        taken, loaded = unavailable(asked), _loaded(users)
        for row in users:
            username = self._remembered.get(row.id) or self._free(row, taken)
            shown = display_name(row.name, username)
            if loaded.get(row.id, set()) & {name.lower() for name in [*self._first(row), shown or username]}:
                what = f"user {row.id}, {shown or username}, was loaded with another data set"
                dataset.tell(dataset.wrong_user(row.line, what, "loaded before", "id"))
            elif row.id in self._remembered and (not is_permitted(username) or username in taken):
                what = f"the names file has {username[:50]!r}, which is not permitted, taken, or like another name"
                dataset.tell(dataset.wrong_user(row.line, what, "taken", "name"))
            else:
                yield Named(row, username, shown)

    def _first(self, row: UserRow) -> list[str]:
        known = self._remembered.get(row.id)
        own = list(islice(candidates(row.name, row.id), 2))
        return [*own, known] if known and is_permitted(known) else own

    def _free(self, row: UserRow, taken: dict[str, str]) -> str:
        asked = set(self._first(row))
        for name in candidates(row.name, row.id):
            is_free = not self._used & _forms(name)
            if is_free and name not in taken and (name in asked or not unavailable([name])):
                self._used |= _forms(name)
                return name
        raise AssertionError("candidates end")


def _forms(name: str) -> set[str]:
    """Shared by names that differ only in case or look alike."""
    return {f"={name.lower()}", f"~{skeleton(name)}"}


def _loaded(users: list[UserRow]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    for original_id, username, shown in fetch(LOADED, [[row.id for row in users]]):
        found.setdefault(original_id, set()).update({username, shown.lower()} - {""})
    return found


def _read(path: Path) -> dict[int, str]:
    """Empty without a file. Raises DatasetError."""
    names: dict[int, str] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file, strict=True)
            header = next(rows, [])
            id_at, name_at = header.index("id"), header.index("username")
            for row in rows:
                names[int(row[id_at])] = row[name_at]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, IndexError, csv.Error) as error:
        raise DatasetError(f"{path} is not a names file with the columns id and username ({error!r})") from None
    if len({name.lower() for name in names.values()}) < len(names):
        raise DatasetError(f"{path} gives two users the same name")
    return names
