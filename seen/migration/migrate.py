"""Migrates old histories of plays into the month filters. Each user merges once, and no request waits.

A file names the users and, if there is no old Redis, their plays. The command writes plays where reads find them
(seen.migration.old), and marks the user for the hourly merge. Repeating work changes nothing.

A line is a user's id, then the ids of their plays, each with an optional `:` and the play's Unix time in seconds. One
space before each id, a newline at the end. Ids are decimals from 1 to 2**53 - 1. The file may be gzipped. A user may
have several lines. A line without plays means that the history is in the old Redis.

    7 1001 1002 1003:1795252000
    8
    9 1001:1795252000 1005:1795252060

Source: the deduplication article, 4, its figure 11.
"""

import gzip
import hashlib
import re
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from django.conf import settings
from django.db import connection
from tqdm import tqdm

from seen.filter_store import FilterKey
from seen.filters import Ids
from seen.migration import old
from seen.migration.old import CLOCK_SKEW, EARLIEST, HISTORY, LARGEST_ID, MARK, MIGRATED, File, Migration, Months, Phase
from seen.played import client, errors, marks
from seen.store import store
from storage.connections import pipelined

LINE_BYTES = 8_000_000
"""Longer lines are invalid."""
CHUNK = 2_000
"""Users to write and mark together."""
CHUNK_BYTES = 8_000_000
"""Bytes of lines after which a chunk ends early."""
HEAD_BYTES = 65_536
LOCK = "feedsite.played_migrate"

_LINE = re.compile(rb"[1-9][0-9]{0,15}+(?: [1-9][0-9]{0,15}+(?::[0-9]{1,10}+)?+)*+\n")
_USER = re.compile(rb"[1-9][0-9]{0,15}+(?=[ \n])")
_PLAY = re.compile(rb"[1-9][0-9]{0,15}(:[0-9]{1,10})?")
Clock = Callable[[], datetime]
Say = Callable[[str], None]


class MigrationError(Exception):
    """The migration cannot go on."""


class Status(NamedTuple):
    """How far the migration is."""

    migration: Migration
    users: int
    """Lines read. Their users are marked on the ring, or merged."""
    merged: int
    """Users marked as migrated."""
    left: int
    """The other users."""


# --- The file ----------------------------------------------------------------------------------------------
class Line(NamedTuple):
    """A line of the file: a user, and the ids that they played, by month."""

    user_id: int
    months: Months


class HistoryFile:
    """Reads the lines of a file from the saved position. `at` is after the last line read."""

    def __init__(self, at: File, *, quiet: bool) -> None:
        self.at = at
        self.name = Path(at.path).name
        self._resources = ExitStack()
        try:
            self._raw = self._resources.enter_context(Path(at.path).open("rb"))  # noqa: SIM115 (closed on exit)
        except OSError as error:
            raise MigrationError(f"{at.path}: {error.strerror}") from None
        self._bar = self._resources.enter_context(
            tqdm(
                total=Path(at.path).stat().st_size,
                desc=self.name,
                unit="B",
                unit_scale=True,
                mininterval=0.5,
                disable=quiet,
            )
        )
        self._head = b""
        self._stream: IO[bytes] | gzip.GzipFile = self._raw
        if self._raw.read(2) == b"\x1f\x8b":
            self._stream = self._resources.enter_context(gzip.GzipFile(fileobj=self._raw))
        self._seek()

    def __enter__(self) -> "HistoryFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def wrong(self, what: object) -> MigrationError:
        """An error that names the current line."""
        return MigrationError(f"{self.name} line {self.at.lines + 1}: {what}")

    def __iter__(self) -> Iterator[bytes]:
        while line := self._read(lambda: self._stream.readline(LINE_BYTES)):
            if len(line) == LINE_BYTES:
                raise self.wrong(f"longer than {LINE_BYTES} bytes")
            if not line.endswith(b"\n"):
                raise self.wrong("the file ends in the middle; it is not whole")
            yield line
            if len(self._head) < HEAD_BYTES:
                self._head += line[: HEAD_BYTES - len(self._head)]
            self.at.lines += 1
            self.at.offset += len(line)
            if self.at.lines % 100 == 0:
                self._show()
        self._show()

    def checkpoint(self, *, is_whole: bool) -> File:
        """The position after the last line, to be saved."""
        return File(self.at.path, self.at.lines, self.at.offset, _digest(self._head), is_whole)

    def user_of(self, line: bytes) -> int:
        """The user's id in a line. Does not check the rest of the line."""
        found = _USER.match(line)
        user_id = int(found.group()) if found else 0
        if not 0 < user_id <= LARGEST_ID:
            raise self.wrong(f"{_shown(line.split()[0] if line.split() else b'')} is not an id (1 to 2**53 - 1)")
        return user_id

    def parsed(self, line: bytes, *, now: datetime) -> Line:
        """Parse a line. Raises MigrationError."""
        if not _LINE.fullmatch(line):
            raise self.wrong(_fault(line))
        user, *plays = line.split()
        if not plays and not settings.PLAYED_OLD_URL:
            raise self.wrong("no ids, and FEEDSITE_PLAYED_OLD_URL names no Redis that has them")
        if b":" not in line:
            ids, seconds = list(map(int, plays)), [0] * len(plays)
        else:
            pairs = [play.partition(b":") for play in plays]
            ids, seconds = [int(pair[0]) for pair in pairs], [int(pair[2] or b"0") for pair in pairs]
        largest = max([int(user), *ids])
        if largest > LARGEST_ID:
            raise self.wrong(f"{largest} is not an id (1 to 2**53 - 1)")
        if not ids:
            return Line(int(user), {})
        return Line(int(user), self._by_month(np.array(ids, dtype=np.uint64), seconds, b":" in line, now))

    def _by_month(self, ids: Ids, seconds: list[int], is_dated: bool, now: datetime) -> Months:
        if is_dated:
            dated = [second for second in seconds if second]
            if dated and max(dated) > (now + CLOCK_SKEW).timestamp():
                raise self.wrong(f"{max(dated)} is in the future")
            if dated and min(dated) < EARLIEST.timestamp():
                raise self.wrong(f"{min(dated)} is before 2000")
        return old.by_month(ids, np.array(seconds, dtype=np.float64) * 1000, now=now)

    def _seek(self) -> None:
        """Go to the saved position, or to the start of another file."""
        self._raw.seek(0)
        head = self._read(lambda: self._stream.read(min(HEAD_BYTES, self.at.offset)))
        if self.at.offset and _digest(head) != self.at.head:
            self.at = File(self.at.path)
            head = b""
        self._head = head
        self._read(lambda: b"%d" % self._stream.seek(self.at.offset))

    def _read(self, read: Callable[[], bytes]) -> bytes:
        try:
            return read()
        except EOFError:
            raise self.wrong("the file ends in the middle; it is not whole") from None
        except (OSError, zlib.error) as error:
            raise self.wrong(f"not readable ({error})") from None

    def _show(self) -> None:
        self._bar.update(self._raw.tell() - self._bar.n)
        self._bar.set_postfix_str(f"{self.at.lines:,} lines", refresh=False)


def _digest(head: bytes) -> str:
    return hashlib.sha256(head).hexdigest()


def _fault(line: bytes) -> str:
    user, *plays = line.removesuffix(b"\n").split(b" ")
    if not re.fullmatch(rb"[1-9][0-9]{0,15}", user):
        return f"{_shown(user)} is not an id (1 to 2**53 - 1)"
    wrong = next((play for play in plays if not _PLAY.fullmatch(play)), b"")
    return f"{_shown(wrong)} is neither an id nor id:seconds"


def _shown(token: bytes) -> str:
    return repr(token[:40].decode("utf-8", "backslashreplace"))


# --- Running -----------------------------------------------------------------------------------------------
def run(path: Path, *, clock: Clock, say: Say = print, quiet: bool = False) -> File:
    """Read a file from the saved position, and mark its users. After its end, read it again for unmerged users.

    Raises MigrationError, PlayedUnavailableError, StoreUnavailableError. Run it again then.
    """
    with _alone():
        begun = _begin(str(path.resolve()), clock())
        again = begun.is_whole
        with HistoryFile(File(begun.path) if again else begun, quiet=quiet) as file:
            if again:
                say("The file was read before. Users who are not merged yet are marked again.")
            elif begun.lines and file.at.lines:
                say(f"Continuing after line {file.at.lines:,}.")
            elif begun.lines:
                say("The file has changed. Reading it from its first line.")
            _read(file, clock, again)
            return file.checkpoint(is_whole=True)


def _begin(path: str, now: datetime) -> File:
    if old.state().phase in (Phase.NONE, Phase.ROLLED_BACK):
        for _ in store().clear(MIGRATED):  # left by a merge that was running at the rollback
            pass

    def begin(migration: Migration) -> Migration:
        if migration.phase == Phase.CUT_OVER:
            raise MigrationError("The migration was cut over. The old data is no longer used.")
        if migration.phase != Phase.RUNNING:
            migration = Migration(Phase.RUNNING, began_at=now.timestamp())
        if not any(file.path == path for file in migration.files):
            migration.files.append(File(path))
        return migration

    old.change_state(begin)
    return next(file for file in old.state().files if file.path == path)


def _read(file: HistoryFile, clock: Clock, again: bool) -> None:
    chunk: list[Line] = []
    size = 0
    now = clock()

    def flush(*, is_whole: bool) -> None:
        _stage(chunk, again=again, now=clock())
        chunk.clear()
        if not again:
            _write_down(file.checkpoint(is_whole=is_whole))

    try:
        for line in file:
            if len(chunk) >= CHUNK or size >= CHUNK_BYTES:
                # The line just read is not counted yet, so the checkpoint is before it.
                flush(is_whole=False)
                size, now = 0, clock()
            chunk.append(file.parsed(line, now=now))
            size += len(line)
    except MigrationError:
        flush(is_whole=False)
        raise
    flush(is_whole=True)


def _stage(lines: list[Line], *, again: bool, now: datetime) -> None:
    """Write the lines' histories to the store, where reads find them. Then mark their users for a merge."""
    histories: dict[int, Months] = {}
    for line in lines:
        before = histories.get(line.user_id)
        histories[line.user_id] = old.joined(before, line.months) if before else line.months
    user_ids = list(histories)
    found = store().read(old.shelved(user_ids))
    is_migrated = {
        user_id: bool(mark) and not history
        for user_id, mark, history in zip(user_ids, found[: len(user_ids)], found[len(user_ids) :], strict=True)
    }
    # A migrated user with another line has a second line in the file, unless the whole file is read again.
    staged = [one for one in user_ids if histories[one] and not (again and is_migrated[one])]
    over = [one for one in user_ids if not histories[one] and not settings.PLAYED_OLD_URL]

    def change(key: FilterKey, data: bytes | None) -> bytes:
        if key.month == MIGRATED:
            return MARK  # all their plays are too old to matter
        return old.packed(old.joined(old.unpacked(data), histories[key.user_id]) if data else histories[key.user_id])

    keys = [*(FilterKey(one, HISTORY) for one in staged), *(FilterKey(one, MIGRATED) for one in over)]
    if keys:
        store().update(keys, change)
    left = {*staged, *(one for one in user_ids if not is_migrated[one])}.difference(over)
    with errors():
        pipelined(client(), marks(left, now=now))


def _write_down(file: File) -> None:
    def change(migration: Migration) -> Migration:
        if migration.phase != Phase.RUNNING:
            raise MigrationError(f"The migration was {migration.phase} meanwhile.")
        migration.files = [file if each.path == file.path else each for each in migration.files]
        return migration

    old.change_state(change)


# --- Ending ------------------------------------------------------------------------------------------------
def cut_over(*, clock: Clock, say: Say = print, quiet: bool = False) -> int:
    """Stop using the old data, if all users are migrated. Returns the number of users checked.

    Checks every user, because counts may be wrong after a failure.
    """
    with _alone():
        migration = old.state()
        users = 0
        if migration.phase != Phase.CUT_OVER:
            if migration.phase != Phase.RUNNING:
                raise MigrationError("No migration is running.")
            if unread := [file.path for file in migration.files if not file.is_whole]:
                raise MigrationError(f"{unread[0]} was not read completely. Run played_migrate on it again.")
            for file in migration.files:
                users += _verified(File(file.path), quiet)
            if (lines := sum(file.lines for file in migration.files)) != users:
                raise MigrationError(f"The files have changed: {users:,} lines now, {lines:,} when they were read.")
            _end(Phase.CUT_OVER, clock())
        _clear_marks(say)
    return users


def _verified(at: File, quiet: bool) -> int:
    """Check that all users of a file are migrated. Returns the number of its lines. Raises MigrationError."""
    left = 0
    user_ids: list[int] = []
    with HistoryFile(at, quiet=quiet) as file:
        for line in file:
            user_ids.append(file.user_of(line))
            if len(user_ids) == CHUNK:
                left += _unmigrated(user_ids)
                user_ids.clear()
        left += _unmigrated(user_ids)
        if left:
            raise MigrationError(
                f"{left:,} of {file.at.lines:,} users of {file.name} are not merged yet. Wait for the merges "
                "(--status). If the number stays the same, run played_migrate on the file again."
            )
        return file.at.lines


def _unmigrated(user_ids: list[int]) -> int:
    found = store().read(old.shelved(user_ids))
    pairs = zip(found[: len(user_ids)], found[len(user_ids) :], strict=True)
    return sum(not mark or bool(history) for mark, history in pairs)


def rollback(*, clock: Clock, say: Say = print) -> None:
    """Return to the old data. Merged plays do no harm."""
    phase = old.state().phase
    if phase == Phase.CUT_OVER:
        raise MigrationError("The migration was cut over. The old data has no plays since then.")
    if phase == Phase.NONE:
        raise MigrationError("No migration is running.")
    _end(Phase.ROLLED_BACK, clock())
    _clear_marks(say)


def _end(phase: Phase, now: datetime) -> None:
    def change(migration: Migration) -> Migration:
        if migration.phase == Phase.CUT_OVER:
            raise MigrationError("The migration was cut over meanwhile.")
        migration.phase = phase
        migration.ended_at = now.timestamp()
        return migration

    old.change_state(change)


def _clear_marks(say: Say) -> None:
    cleared = sum(store().clear(MIGRATED))
    if cleared:
        say(f"{cleared:,} marks were removed.")


def status() -> Status:
    """How far the migration is. On a server the counts are approximate after a failure."""
    migration = old.state()
    users = sum(file.lines for file in migration.files)
    merged, histories = store().count(MIGRATED), store().count(HISTORY)
    left = max(users - merged, histories) if settings.PLAYED_OLD_URL else histories
    return Status(migration, users, merged, left if migration.phase == Phase.RUNNING else histories)


@contextmanager
def _alone() -> Iterator[None]:
    """Let one run at a time into the block. A killed command loses its lock."""
    with connection.cursor() as cursor:
        for _ in range(50):
            cursor.execute("SELECT pg_try_advisory_lock(hashtext(%s))", [LOCK])
            if cursor.fetchone() == (True,):
                break
            time.sleep(0.1)
        else:
            raise MigrationError("Another played_migrate is running.")
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(hashtext(%s))", [LOCK])
