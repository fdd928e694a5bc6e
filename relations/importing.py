"""Imports of CSV files. Rows of `CsvImport` are the queue. Every line is idempotent.

See docs/decisions.md: Imports are rows with a cursor.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from accounts.models import User
from relations import actions, lists
from relations.csv_files import CsvKind, CsvLine
from relations.models import TITLE_LENGTH, Block, CsvImport, FollowRequest
from relations.tags import TagCapError, follow_tag
from relations.visibility import find_user
from storage import claims
from storage.queue import task

PART = 20
"""Lines of one transaction."""
PARTS = 50
"""Batches of one task, so that a long list does not block a worker."""
REPORTS = 20
"""Imports kept per user."""
SECONDS = 300
"""Time limit of a task. Finished batches stay."""
ATTEMPTS = 3
"""An import ends after this many failures in a row."""


class ListImportRunningError(Exception):
    """The user's last import is still running."""


def begin(*, user: User, kind: CsvKind, lines: list[CsvLine]) -> CsvImport:
    """Queue an import. Raises ListImportRunningError."""
    try:
        with transaction.atomic():
            made = CsvImport.objects.create(user=user, kind=kind, lines=msgspec.to_builtins(lines), total=len(lines))
            transaction.on_commit(lambda: claims.enqueue_turn(run, CsvImport, made.pk))
    except IntegrityError as error:
        if "csv_import_at_a_time" not in str(error):
            raise
        raise ListImportRunningError from error
    old = CsvImport.objects.filter(user=user).order_by("-pk").values_list("pk", flat=True)[REPORTS:]
    CsvImport.objects.filter(pk__in=list(old)).delete()
    return made


@task("relations.run_import", soft_time_limit=SECONDS, time_limit=SECONDS + 30)
def run(import_id: int, turn: str | None = None) -> bool:
    """Do the next lines. True if complete."""
    row = CsvImport.objects.filter(pk=import_id, finished_at=None).first()
    if row is None or not row.claim(turn):
        return False
    if row.attempts >= ATTEMPTS:
        CsvImport.objects.filter(pk=import_id, finished_at=None).update(finished_at=Now(), lines=[])
        return False
    for _ in range(PARTS):
        if _import_part(import_id):
            return True
    row.release()
    claims.enqueue_turn(run, CsvImport, import_id)
    return False


@transaction.atomic
def _import_part(import_id: int) -> bool:
    waiting = CsvImport.objects.select_for_update().filter(pk=import_id, finished_at=None)
    row = waiting.first()
    if row is None:
        return True
    user = User.objects.get(pk=row.user_id)
    lines = [msgspec.convert(line, CsvLine) for line in row.lines[row.done : row.done + PART]] if user.is_active else []
    for line, outcome in import_lines(user=user, kind=CsvKind(row.kind), lines=lines):
        _record_outcome(row, line, outcome)
    row.done += len(lines)
    row.attempts, row.tried_at = 0, Now()
    is_done = len(lines) < PART or row.done >= row.total
    changed = ["done", "changed", "requested", "refused", "attempts", "tried_at"]
    if is_done:
        row.finished_at, row.lines = Now(), []  # other people's names are kept no longer than needed
        changed += ["finished_at", "lines"]
    row.save(update_fields=changed)
    return is_done


def _record_outcome(row: CsvImport, line: CsvLine, outcome: str) -> None:
    if outcome == "done":
        row.changed += 1
    elif outcome == "requested":
        row.requested += 1
    elif outcome:
        row.refused.append([line.name, outcome, *[line.title] * bool(line.title)])


class FolloweeBlockedError(Exception):
    """The user blocks the one they would follow."""


class TitleError(Exception):
    """The title of a list is empty or too long."""


OUTCOMES: dict[type[Exception], str] = {
    actions.SelfRelationError: "self",
    actions.FollowCapError: "cap",
    actions.RequestCapError: "requests",
    FolloweeBlockedError: "blocked",
    TitleError: "title",
    actions.NotFollowedError: "unfollowed",
    lists.ListCapError: "lists",
    lists.MemberCapError: "members",
    TagCapError: "hashtags",
    actions.BellCapError: "bells",
}
"""The reason to report for each exception."""


def import_lines(*, user: User, kind: CsvKind, lines: Sequence[CsvLine]) -> list[tuple[CsvLine, str]]:
    """Do lines in the caller's transaction. Returns each with its outcome. Ordered by name, to avoid deadlocks."""
    return [(line, _import_line(user, kind, line)) for line in sorted(lines, key=lambda line: line.name.lower())]


def _import_line(user: User, kind: CsvKind, line: CsvLine) -> str:
    """Do one line. Returns `done`, `requested`, "" if nothing changed, or a key of `models.REFUSALS`."""
    if kind == CsvKind.TAGS:
        return _follow(user, line)
    if not line.is_local:
        return "elsewhere" if "@" in line.name else "unknown"
    other = find_user(line.name, user)
    if other is None:
        return "unknown"
    try:
        with transaction.atomic():
            has_changed = _apply_line(user, other, kind, line)
    except tuple(OUTCOMES) as error:
        return OUTCOMES[type(error)]
    if not has_changed:
        return ""
    is_request = kind == CsvKind.FOLLOWS and other.is_locked
    if is_request and FollowRequest.objects.filter(follower=user, followee=other).exists():
        return "requested"
    return "done"


def _follow(user: User, line: CsvLine) -> str:
    if not line.is_local:
        return "no_hashtag"
    try:
        return "done" if follow_tag(user=user, tag=line.name) else ""
    except TagCapError as error:
        return OUTCOMES[type(error)]


def _apply_line(user: User, other: User, kind: CsvKind, line: CsvLine) -> bool:
    match kind:
        case CsvKind.BLOCKS:
            return actions.block(blocker=user, blocked=other)
        case CsvKind.MUTES:
            return actions.mute(muter=user, muted=other, notifications=line.flag)
        case CsvKind.LISTS:
            if not 0 < len(line.title) <= TITLE_LENGTH:
                raise TitleError
            return lists.add_by_title(owner=user, title=line.title, member=other)
        case _:
            if Block.objects.filter(blocker=user, blocked=other).exists():
                raise FolloweeBlockedError
            return actions.follow(follower=user, followee=other, reposts=line.flag, bell=line.bell)


# --- Upkeep ----------------------------------------------------------------------------------------------
def sweep() -> int:
    """Periodic: queue lost imports and delete old reports."""
    return claims.sweep(CsvImport, run)


def purge(*, user: User) -> int:
    """Delete the imports of a deleted account."""
    gone: Any = CsvImport.objects.filter(user=user).delete()[0]
    return int(gone)
