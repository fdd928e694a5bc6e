"""Reads a data set from a folder, line by line.

| file | a line holds |
|---|---|
| users.csv.gz | `id`, `name` (becomes the username), and optionally `avatar`, the path of a picture |
| follows.csv.gz | `follower_id`, `followee_id`, and optionally `created_at` |
| posts.jsonl.gz | an object with `id`, `author_id`, `created_at`, `text`, and optionally `media`: paths, or objects
  with `path` and `description` |

CSV files have a header. Unknown columns and keys are ignored. Times are ISO-8601 with an offset. A wrong line is
skipped and passed to `Dataset.tell`, which raises it by default.
"""

import gzip
import hashlib
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from tqdm import tqdm

from community.problems import DatasetError, LineError, LineProblem
from community.repeated import RowNumbers
from items.models import ItemType
from items.text import ContentError, check_content
from relations.csv_files import read_rows
from storage import ids

FILES = ("users.csv.gz", "follows.csv.gz", "posts.jsonl.gz")
LINE_BYTES = 1_000_000
"""Maximum bytes of a line. A longer one would be read into memory."""
CLOCK_SKEW = timedelta(days=1)
"""Later times are wrong: the post would stay at the top of every home until then."""
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
"""Earlier times are wrong, and the first years overflow in some time zones."""
LARGEST_ID = 2**63 - 1


_PATH = re.compile(r" - at `\$\.([a-z_]+)")
"""Finds the key in msgspec's error message."""

ErrorHandler = Callable[[LineError], None]


def _raise(error: LineError) -> None:
    raise error


class UserRow(NamedTuple):
    """A user and their line."""

    line: int
    id: int
    name: str
    avatar: str = ""


class FollowRow(NamedTuple):
    follower_id: int
    followee_id: int
    created_at: datetime | None


class Medium(NamedTuple):
    """A picture or video of a post."""

    path: str
    description: str


class PostRow(NamedTuple):
    """A post and its line in posts.jsonl.gz."""

    line: int
    author_id: int
    created_at: datetime
    text: str
    media: tuple[Medium, ...] = ()


class _Medium(msgspec.Struct):
    path: str
    description: str = ""


class _Post(msgspec.Struct):
    id: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_ID)]
    author_id: int
    created_at: Annotated[datetime, msgspec.Meta(tz=True)]
    text: str
    media: list[str | _Medium] = []


class _LineFile:
    """Numbered lines. `wrong` makes the current line's error."""

    def __init__(self, path: Path, *, quiet: bool) -> None:
        self.path = path
        self.line = 0
        self.tell: ErrorHandler = _raise
        self._quiet = quiet

    def wrong(self, what: object, kind: str, column: str = "", line: int | None = None) -> LineError:
        return LineError(LineProblem(self.path.name, line or self.line, column, kind, str(what)))

    def __iter__(self) -> Iterator[str]:
        return self._lines()

    def _lines(self) -> Generator[str]:
        self.line = 0
        with (
            self.path.open("rb") as packed,
            gzip.open(packed) as stream,
            tqdm(
                total=self.path.stat().st_size,
                desc=self.path.name,
                unit="B",
                unit_scale=True,
                mininterval=0.5,
                disable=self._quiet or None,
            ) as bar,
        ):
            while line := self._line(stream):
                bar.update(packed.tell() - bar.n)
                if len(line) == LINE_BYTES:
                    self.tell(self.wrong(f"longer than {LINE_BYTES} bytes", "too long"))
                    while line and not line.endswith(b"\n"):
                        line = self._part(stream)
                    continue
                try:
                    yield line.decode()
                except UnicodeDecodeError as error:
                    self.tell(self.wrong(f"not UTF-8 ({error.reason})", "encoding"))

    def _line(self, stream: gzip.GzipFile) -> bytes:
        self.line += 1
        return self._part(stream)

    def _part(self, stream: gzip.GzipFile) -> bytes:
        """The next bytes of a line, at most `LINE_BYTES`. Empty at the end, also of a truncated file."""
        try:
            return stream.readline(LINE_BYTES)
        except EOFError:
            self.tell(self.wrong("the file ends in the middle; it is not whole", "unreadable"))
        except (OSError, zlib.error) as error:
            self.tell(self.wrong(f"not readable as gzip ({error})", "unreadable"))
        return b""

    def table(self, *columns: str) -> Iterator[dict[str, str]]:
        with closing(self._lines()) as lines:  # closes the file after an error too
            rows = read_rows(lines, lambda error: self.tell(self.wrong(error, "csv")))
            header = next(rows, [])
            if missing := [column for column in columns if column not in header]:
                self.tell(self.wrong(f"the column {missing[0]} is missing", "no column", missing[0], line=1))
                return
            for row in rows:
                if len(row) == len(header):
                    yield dict(zip(header, row, strict=True))
                else:
                    self.tell(self.wrong(f"{len(row)} columns instead of {len(header)}", "columns"))


class Dataset:
    """A data set in a folder. Read its parts in this order, as often as needed: users, follows, posts. Raises
    DatasetError if a file is missing.
    """

    def __init__(self, folder: Path, *, quiet: bool = False) -> None:
        self.folder = folder
        self._users, self._follows, self._posts = (_LineFile(folder / name, quiet=quiet) for name in FILES)
        self._user_ids: set[int] = set()
        self._latest = datetime.now(UTC) + CLOCK_SKEW
        digest = hashlib.sha256()
        for name in FILES:
            try:
                with (folder / name).open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
            except OSError as error:
                raise DatasetError(f"{folder / name}: {error.strerror}") from None
        self.fingerprint = digest.hexdigest()

    @property
    def tell(self) -> ErrorHandler:
        """The function that receives each wrong line."""
        return self._users.tell

    @tell.setter
    def tell(self, function: ErrorHandler) -> None:
        self._users.tell = self._follows.tell = self._posts.tell = function

    def wrong_user(self, line: int, what: object, kind: str, column: str) -> LineError:
        """The error of a line of users.csv.gz."""
        return self._users.wrong(what, kind, column, line)

    def wrong_post(self, line: int, what: object, kind: str, column: str) -> LineError:
        """The error of a line of posts.jsonl.gz."""
        return self._posts.wrong(what, kind, column, line)

    def users(self) -> Iterator[UserRow]:
        """Users with distinct ids."""
        file, seen = self._users, set[int]()
        self._user_ids = seen
        for row in file.table("id", "name"):
            try:
                user_id = _parse_id(file, row, "id")
                if user_id in seen:
                    raise file.wrong(f"the id {user_id} is also in an earlier line", "repeated", "id")
            except LineError as error:
                self.tell(error)
                continue
            seen.add(user_id)
            yield UserRow(file.line, user_id, row["name"], row.get("avatar", ""))

    def follows(self) -> Iterator[FollowRow]:
        """Follows between known users."""
        file, pairs = self._follows, RowNumbers(2)
        for row in file.table("follower_id", "followee_id"):
            try:
                follow = self._follow(row)
            except LineError as error:
                self.tell(error)
                continue
            pairs.add(file.line, follow.follower_id, follow.followee_id)
            yield follow
        for line, (follower, followee) in pairs.repeated():
            self.tell(file.wrong(f"{follower} follows {followee} in an earlier line too", "repeated", line=line))

    def _follow(self, row: dict[str, str]) -> FollowRow:
        file = self._follows
        follower, followee = _parse_id(file, row, "follower_id"), _parse_id(file, row, "followee_id")
        self._check_known(file, follower, "follower_id")
        self._check_known(file, followee, "followee_id")
        if follower == followee:
            raise file.wrong(f"user {follower} follows themself", "self", "followee_id")
        return FollowRow(follower, followee, self._follow_time(row))

    def _follow_time(self, row: dict[str, str]) -> datetime | None:
        file = self._follows
        if "created_at" not in row:
            return None
        text = row["created_at"]
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise file.wrong(f"created_at {text!r} is not an ISO-8601 time", "time", "created_at") from None
        if moment.tzinfo is None:
            raise file.wrong(f"created_at {text!r} has no UTC offset", "time", "created_at")
        self._check_past(file, moment)
        return moment

    def posts(self) -> Iterator[PostRow]:
        """Valid posts of known authors."""
        file, rows = self._posts, RowNumbers(1)
        decode = msgspec.json.Decoder(_Post).decode
        for line in file:
            try:
                post = self._post(decode, line)
            except LineError as error:
                self.tell(error)
                continue
            rows.add(file.line, post.id)
            media = (
                Medium(one, "") if isinstance(one, str) else Medium(one.path, one.description) for one in post.media
            )
            yield PostRow(file.line, post.author_id, post.created_at, post.text, tuple(media))
        for number, (post_id,) in rows.repeated():
            self.tell(file.wrong(f"the id {post_id} is also in an earlier line", "repeated", "id", number))

    def _post(self, decode: Callable[[str], _Post], line: str) -> _Post:
        file = self._posts
        try:
            post = decode(line)
        except msgspec.MsgspecError as error:
            key = _PATH.search(str(error))
            raise file.wrong(error, "json", key[1] if key else "") from None
        try:
            _check_content(post)
        except ContentError as error:
            raise file.wrong(error, "text", "media" if error.field == "content.media" else "text") from None
        if "\0" in post.text:
            raise file.wrong("the text holds a NUL character", "text", "text")
        self._check_known(file, post.author_id, "author_id")
        self._check_past(file, post.created_at)
        if post.created_at <= ids.EPOCH:
            raise file.wrong(f"{post.created_at} is before 2000, where item ids begin", "time", "created_at")
        return post

    def _check_known(self, file: _LineFile, user_id: int, column: str) -> None:
        if user_id not in self._user_ids:
            raise file.wrong(f"the user {user_id} is not in {self._users.path.name}", "unknown user", column)

    def _check_past(self, file: _LineFile, moment: datetime) -> None:
        if moment > self._latest:
            raise file.wrong(f"{moment} is in the future", "time", "created_at")
        if moment < EARLIEST:
            raise file.wrong(f"{moment} is before 1970", "time", "created_at")


def _check_content(post: _Post) -> None:
    places = [str(place) for place, _ in enumerate(post.media, start=1)]
    kind = ItemType.IMAGE if places else ItemType.TEXT
    check_content(kind, {"text": post.text, "media": places})


def _parse_id(file: _LineFile, row: dict[str, str], column: str) -> int:
    text = row[column]
    if not (text.isascii() and text.isdigit() and len(text) < 20 and 0 < int(text) <= LARGEST_ID):
        raise file.wrong(f"{column} {text[:30]!r} is not an id (an integer from 1)", "id", column)
    return int(text)
