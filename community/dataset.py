"""A data set on disk: users.csv.gz, follows.csv.gz and posts.jsonl.gz of one folder, checked line by line.

| file | a line holds |
|---|---|
| users.csv.gz | `id`, `name` (becomes the username), and `avatar`, the path of a picture, where there are some |
| follows.csv.gz | `follower_id`, `followee_id`, and `created_at` where it is known |
| posts.jsonl.gz | an object with `id`, `author_id`, `created_at`, `text`, and `media` where there are some: paths,
or objects with `path` and `description` |

Csv files begin with a header; further columns and keys are left out. Times are ISO-8601 with an offset.
Whatever is wrong is one DatasetError that names the file and the line.
"""

import csv
import gzip
import hashlib
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from django.core.exceptions import ValidationError
from tqdm import tqdm

from accounts.models import User
from items.models import ItemType
from items.text import ContentError, check_content
from storage import ids

FILES = ("users.csv.gz", "follows.csv.gz", "posts.jsonl.gz")
LINE_LENGTH = 1_000_000
"""Bytes. A longer line is none of a data set, and would be read into memory whole."""
CLOCK_SKEW = timedelta(days=1)
"""A time further ahead than this is wrong: the post would stand at the head of every home until then."""
LARGEST_ID = 2**63 - 1


class DatasetError(Exception):
    """The data set cannot be loaded; the message names the file and the line."""


class UserRow(NamedTuple):
    """A user of users.csv.gz, and the line it stands in. `avatar` is the path of a picture in the data set's folder, or
    empty.
    """

    line: int
    id: int
    name: str
    avatar: str


class FollowRow(NamedTuple):
    """A follow of follows.csv.gz; without a time in the file `created_at` is None."""

    follower_id: int
    followee_id: int
    created_at: datetime | None


class Medium(NamedTuple):
    """A picture or video of a post: its path in the data set's folder, and what it shows in words."""

    path: str
    description: str


class PostRow(NamedTuple):
    """A post of posts.jsonl.gz, and the line it stands in."""

    line: int
    author_id: int
    created_at: datetime
    text: str
    media: tuple[Medium, ...]


class _Medium(msgspec.Struct):
    path: str
    description: str = ""


class _Post(msgspec.Struct):
    id: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_ID)]
    author_id: int
    created_at: Annotated[datetime, msgspec.Meta(tz=True)]
    text: str
    media: list[str | _Medium] = []


class _File:
    """One file; iterating gives its lines as numbered text. `wrong` is the error of the line last given."""

    def __init__(self, path: Path, *, quiet: bool) -> None:
        self.path = path
        self.line = 0
        self._quiet = quiet

    def wrong(self, what: object, line: int | None = None) -> DatasetError:
        return DatasetError(f"{self.path.name} line {line or self.line}: {what}")

    def __iter__(self) -> Iterator[str]:
        return self._lines()

    def _lines(self) -> Generator[str]:
        with (
            self.path.open("rb") as packed,
            gzip.open(packed) as stream,
            tqdm(
                total=self.path.stat().st_size,
                desc=self.path.name,
                unit="B",
                unit_scale=True,
                mininterval=0.5,
                disable=self._quiet,
            ) as bar,
        ):
            while True:
                self.line += 1
                try:
                    line = stream.readline(LINE_LENGTH)
                    text = line.decode()
                except EOFError:
                    raise self.wrong("the file ends in the middle; it is not whole") from None
                except (OSError, zlib.error) as error:
                    raise self.wrong(f"not readable as gzip ({error})") from None
                except UnicodeDecodeError as error:
                    raise self.wrong(f"not UTF-8 ({error.reason})") from None
                if len(line) == LINE_LENGTH:
                    raise self.wrong(f"longer than {LINE_LENGTH} bytes")
                bar.update(packed.tell() - bar.n)
                if not line:
                    return
                yield text

    def table(self, *columns: str) -> Iterator[dict[str, str]]:
        """The rows of a csv file, which must have these columns."""
        with closing(self._lines()) as lines:  # an error closes the file, too
            rows = csv.reader(lines, strict=True)
            try:
                header = next(rows, [])
                missing = [column for column in columns if column not in header]
                if missing:
                    raise self.wrong(f"the column {missing[0]} is missing", line=1)
                for row in rows:
                    if len(row) != len(header):
                        raise self.wrong(f"{len(row)} columns instead of {len(header)}")
                    yield dict(zip(header, row, strict=True))
            except csv.Error as error:
                raise self.wrong(error) from None


class Dataset:
    """The data set of a folder. Its parts are read once, in this order: users, follows, posts.

    Raises DatasetError at once if a file is missing. `quiet` hides the progress bars.
    """

    def __init__(self, folder: Path, *, quiet: bool = False) -> None:
        self.folder = folder
        self._users, self._follows, self._posts = (_File(folder / name, quiet=quiet) for name in FILES)
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

    def wrong_user(self, line: int, what: object) -> DatasetError:
        """The error of a line of users.csv.gz."""
        return self._users.wrong(what, line)

    def wrong_post(self, line: int, what: object) -> DatasetError:
        """The error of a line of posts.jsonl.gz."""
        return self._posts.wrong(what, line)

    def users(self) -> Iterator[UserRow]:
        """Distinct ids and distinct, well-formed usernames."""
        file, names = self._users, set()
        validators = User._meta.get_field("username").validators
        for row in file.table("id", "name"):
            user_id, name = _number(file, row, "id"), row["name"]
            try:
                for validate in validators:
                    validate(name)
            except ValidationError as error:
                raise file.wrong(f"the name {name!r}: {error.messages[0]}") from None
            if user_id in self._user_ids:
                raise file.wrong(f"the id {user_id} stands in an earlier line")
            if name.lower() in names:
                raise file.wrong(f"the name {name} stands in an earlier line")
            self._user_ids.add(user_id)
            names.add(name.lower())
            yield UserRow(file.line, user_id, name, row.get("avatar", ""))

    def follows(self) -> Iterator[FollowRow]:
        """Distinct pairs of two known users."""
        file, pairs = self._follows, set()
        for row in file.table("follower_id", "followee_id"):
            follower, followee = _number(file, row, "follower_id"), _number(file, row, "followee_id")
            for user_id in (follower, followee):
                self._check_known(file, user_id)
            if follower == followee:
                raise file.wrong(f"user {follower} follows themself")
            if (follower, followee) in pairs:
                raise file.wrong(f"{follower} follows {followee} in an earlier line")
            pairs.add((follower, followee))
            yield FollowRow(follower, followee, self._follow_time(row))

    def _follow_time(self, row: dict[str, str]) -> datetime | None:
        file = self._follows
        if "created_at" not in row:
            return None
        text = row["created_at"]
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise file.wrong(f"created_at {text!r} is no ISO-8601 time") from None
        if moment.tzinfo is None:
            raise file.wrong(f"created_at {text!r} has no UTC offset")
        self._check_past(file, moment)
        return moment

    def posts(self) -> Iterator[PostRow]:
        """Distinct ids, known authors, times that an item id can hold, texts that an item may hold. What the media
        are is asked when they are opened.
        """
        file, seen = self._posts, set()
        decode = msgspec.json.Decoder(_Post).decode
        for line in file:
            try:
                post = decode(line)
                _check(post)
            except (msgspec.MsgspecError, ContentError) as error:
                raise file.wrong(error) from None
            if "\0" in post.text:
                raise file.wrong("the text holds a NUL character")
            if post.id in seen:
                raise file.wrong(f"the id {post.id} stands in an earlier line")
            seen.add(post.id)
            self._check_known(file, post.author_id)
            self._check_past(file, post.created_at)
            if post.created_at <= ids.EPOCH:
                raise file.wrong(f"{post.created_at} lies before 2000, where item ids begin")
            media = (
                Medium(one, "") if isinstance(one, str) else Medium(one.path, one.description) for one in post.media
            )
            yield PostRow(file.line, post.author_id, post.created_at, post.text, tuple(media))

    def _check_known(self, file: _File, user_id: int) -> None:
        if user_id not in self._user_ids:
            raise file.wrong(f"the user {user_id} is not in {self._users.path.name}")

    def _check_past(self, file: _File, moment: datetime) -> None:
        if moment > self._latest:
            raise file.wrong(f"{moment} lies in the future")


def _check(post: _Post) -> None:
    """Raise ContentError unless an item may hold the text, and so many media."""
    places = [str(place) for place, _ in enumerate(post.media, start=1)]
    kind = ItemType.IMAGE if places else ItemType.TEXT
    check_content(kind, {"text": post.text, "media": places})


def _number(file: _File, row: dict[str, str], column: str) -> int:
    text = row[column]
    if not (text.isascii() and text.isdigit() and len(text) < 20 and 0 < int(text) <= LARGEST_ID):
        raise file.wrong(f"{column} {text!r} is no id (an integer from 1)")
    return int(text)
