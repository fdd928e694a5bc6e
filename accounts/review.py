"""Lets moderation look at members' texts that are not items."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from accounts.signals import text_submitted
from media.models import MediaFile


class ReviewStatus:
    """States of a text, as for items."""

    PUBLISHED = "published"
    IN_REVIEW = "in_review"
    REJECTED = "rejected"
    DELETED = "deleted"


class EarlierText(NamedTuple):
    """An earlier text by the author."""

    at: datetime
    text: str


class Submission(NamedTuple):
    """A text to be published. `author` has no id at sign-up. `earlier`: their texts of the last hour."""

    author: User
    text: str
    is_new: bool = True
    earlier: Sequence[EarlierText] = ()


def only_links(found: Sequence[str]) -> bool:
    """Whether a young account's links are the only reason. Such an edit is refused, because holding it would hide the
    text.
    """
    return bool(found) and all(reason.startswith("link: ") for reason in found)


def hold_reasons(submission: Submission) -> list[str]:
    """Why a moderator must see the text first: `code: words`."""
    answers = text_submitted.send(sender=Submission, submission=submission)
    return [reason for _, found in answers for reason in found or ()]


class JudgeError(PermissionError):
    """Somebody may not judge an author. The message is for people."""


def may_judge(author: User | None, by: User | None) -> bool:
    """Whether `by` (None: the site) may decide about an author. Only superusers do about superusers, and about
    themselves only the last one.
    """
    if by is None or author is None:
        return True
    if author.pk == by.pk:
        return by.is_superuser and not User.objects.active().filter(is_superuser=True).exclude(pk=by.pk).exists()
    return by.is_superuser or not author.is_superuser


def check_judge(author: User | None, by: User | None) -> None:
    """Raise JudgeError if `by` may not decide about an author."""
    if not may_judge(author, by):
        raise JudgeError(_("You can't decide about yourself or a superuser. Ask a superuser to do it."))


def not_judged_message(count: int) -> str:
    """A message of the admin about rows whose authors the caller may not judge."""
    return ngettext(
        "%(count)s not changed: you can't decide about yourself or a superuser.",
        "%(count)s not changed: you can't decide about yourself or a superuser.",
        count,
    )


class Subject(NamedTuple):
    """A text for moderators. `media`: pictures in any state."""

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


def _no_subjects(session_ids: Iterable[int]) -> Mapping[int, Subject]:
    return {}


def _no_visible_subject(session_id: int, reader: User) -> Subject | None:
    return None


def _no_locked_subject(session_id: int) -> Subject | None:
    return None


def _judge_nothing(session_id: int, status: str) -> bool:
    return False


def _uncover_nothing(session_id: int, medium_id: int) -> bool:
    return False


def _end_nothing(session_id: int) -> bool:
    return False


@dataclass
class ReviewedSessions:
    """Functions for live sessions, which package live sets at start-up.

    `seen`: one session, if the reader may see it. `lock`: one session, locked until the transaction ends. `judge`,
    `uncover` and `end` return whether anything changed.
    """

    find: Callable[[Iterable[int]], Mapping[int, Subject]] = _no_subjects
    seen: Callable[[int, User], Subject | None] = _no_visible_subject
    lock: Callable[[int], Subject | None] = _no_locked_subject
    judge: Callable[[int, str], bool] = _judge_nothing
    uncover: Callable[[int, int], bool] = _uncover_nothing
    end: Callable[[int], bool] = _end_nothing


sessions = ReviewedSessions()
