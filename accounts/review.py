"""Texts of members that are no items, and moderators: what the room that keeps them and moderation, which knows none of
these rooms, have to say to each other.

See docs/decisions.md: Imports point down.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from accounts.models import User
from accounts.signals import text_submitted
from media.models import MediaFile


class Status:
    """The states of a text that moderators look at, in the words of items."""

    PUBLISHED = "published"
    IN_REVIEW = "in_review"
    REJECTED = "rejected"
    DELETED = "deleted"


class Earlier(NamedTuple):
    """An earlier text of the author, and its time."""

    at: datetime
    text: str


class Submission(NamedTuple):
    """A text that its author wants others to read.

    `author` has no id yet at sign-up. `earlier`: other texts of the same kind by the author within the last hour, in
    any order; of a text that is changed (not `is_new`) only what it says is compared with them, not how many they are.
    """

    author: User
    text: str
    is_new: bool = True
    earlier: Sequence[Earlier] = ()


def only_links(found: Sequence[str]) -> bool:
    """Whether links of a young account are all that there is against a text. An edit of what others see already is
    refused then, in words that say so, where being held would take it away from them.
    """
    return bool(found) and all(reason.startswith("link: ") for reason in found)


def reasons(submission: Submission) -> list[str]:
    """Why a moderator has to see the text first: `code: words for people` each."""
    answers = text_submitted.send(sender=Submission, submission=submission)
    return [reason for _, found in answers for reason in found or ()]


class Subject(NamedTuple):
    """A text as moderators see it. `kind` says what it is, for people; `address` is its page on the site. `media` are
    the pictures that it shows or showed, in whatever state.
    """

    id: int
    author: User
    kind: str
    title: str
    text: str
    url: str
    status: str
    created_at: datetime
    modified_at: datetime
    address: str
    media: Sequence[MediaFile] = ()


def _none(session_ids: Iterable[int]) -> Mapping[int, Subject]:
    return {}


def _unseen(session_id: int, reader: User) -> Subject | None:
    return None


def _nothing(session_id: int) -> Subject | None:
    return None


def _unknown(session_id: int, status: str) -> bool:
    return False


def _bare(session_id: int, medium_id: int) -> bool:
    return False


def _over(session_id: int) -> bool:
    return False


@dataclass
class ReviewedSessions:
    """Live sessions, by the room that keeps them, which puts its functions in here when the site is ready.

    `find` tells of those sessions that there are, `seen` of one if the reader may see it. `lock` tells of one, which
    stays as it is until the transaction ends. `judge` gives one another status, `uncover` takes a cover from one,
    `end` puts an end to one; True if that changed anything.
    """

    find: Callable[[Iterable[int]], Mapping[int, Subject]] = _none
    seen: Callable[[int, User], Subject | None] = _unseen
    lock: Callable[[int], Subject | None] = _nothing
    judge: Callable[[int, str], bool] = _unknown
    uncover: Callable[[int, int], bool] = _bare
    end: Callable[[int], bool] = _over


sessions = ReviewedSessions()
