"""Imports archives. Rows of `ArchiveImport` are the queue.

Posts come in parts, oldest first. Media are uploaded before their part, with idempotency keys. A lock on the folder
keeps other workers away.

See docs/decisions.md: Imports are rows with a cursor.
"""

import fcntl
import math
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import msgspec
from django.db import transaction
from django.db.models.functions import Now

from accounts.models import User
from community.archives import extras, finding, listed, outbox, reader
from community.archives.archive import ArchiveError
from community.archives.finding import ArchiveOutbox
from community.archives.listed import ArchiveLists, ImportTally
from community.archives.media import StoredMedia, store_media
from community.archives.models import ARCHIVE, NOTES, ArchiveImport, BroughtItem, ImportState, ListKind, folder_of
from community.archives.outbox import LeftOutError, Post
from items import actions as items
from items.models import Item, Status, Visibility
from items.quotes import audience_fits, may_quote
from items.text import ContentError
from storage import claims
from storage.queue import task
from web import rates

PART = 20
"""Posts per transaction."""
PARTS = 20
SECONDS = 5.0
"""Maximum parts per task, and seconds after which no further part or post with media starts. Other tasks need the
workers too.
"""
ATTEMPTS = 3
"""An import ends after this many failures in a row."""
UNPACKING_SECONDS = 600
"""Maximum seconds of a task that waits while other uploads take all decoders."""
LIMIT_SECONDS = reader.cpu_seconds() * reader.WAIT_FACTOR + UNPACKING_SECONDS
"""Time limit of a task."""
ORPHAN_SECONDS = 3600
"""A folder without a row may be an upload in progress for this long."""
LOCK = "lock"


class ImportTakenError(Exception):
    """Another worker has the import."""


class StoppedError(Exception):
    """The import was stopped."""


# --- One task --------------------------------------------------------------------------------------------
@task("moving.run_import", soft_time_limit=LIMIT_SECONDS, time_limit=LIMIT_SECONDS + 30)
def run(import_id: int, turn: str | None = None) -> bool:
    """Continue an import. Return whether it ended."""
    row = ArchiveImport.objects.filter(pk=import_id, finished_at=None).first()
    if row is None:
        return False
    folder = folder_of(row.folder)
    if not folder.is_dir():  # it is on another machine, or was removed
        return not _claim(row, turn) and row.attempts >= ATTEMPTS
    try:
        with _folder_lock(folder) as lock:
            if _claim(row, turn) and not _resume(row, folder, lock):
                return False
            if is_running(import_id):
                return False
            shutil.rmtree(folder, ignore_errors=True)
            return True
    except ImportTakenError:
        return False


def is_running(import_id: int) -> bool:
    """Whether the import has not ended."""
    return ArchiveImport.objects.filter(pk=import_id, finished_at=None).exists()


def _claim(row: ArchiveImport, turn: str | None) -> bool:
    if row.attempts >= ATTEMPTS:
        _finish(row, "failed" if folder_of(row.folder).is_dir() else "gone")
        return False
    return row.claim(turn)


@contextmanager
def _folder_lock(folder: Path) -> Iterator[int]:
    """Lock the folder of an import. Raises ImportTakenError if another worker has it, or it is on another machine."""
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        raise ImportTakenError from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield handle
    except BlockingIOError:
        raise ImportTakenError from None
    finally:
        os.close(handle)


def _resume(row: ArchiveImport, folder: Path, lock: int) -> bool:
    began = time.monotonic()
    if row.total is None:
        try:
            _prepare(row, folder, lock)
        except ArchiveError as error:
            _finish(row, str(error))
            return True
    posts, lists = finding.open_outbox(folder / "outbox.json"), ArchiveLists(folder)
    if row.lists is None:
        row.lists = lists.found()
        row.save(update_fields=["lists"])
    until = time.monotonic() + SECONDS
    try:
        for _ in range(PARTS):
            if time.monotonic() > until:
                break
            if row.done < len(posts):
                _import_posts(row, folder, posts, until)
            elif kind := _next_list(row):
                _list_part(row, kind, lists)
            else:
                extras.import_extras(row, folder)
                _finish(row)
                return True
    except StoppedError:
        return True
    spent = math.ceil((time.monotonic() - began) * 1000)
    wait = rates.hit("outside_archives", str(row.user_id), spent)
    row.release(rest=timedelta(seconds=wait or 0.0))
    if wait is None:  # else the sweep sends it
        claims.enqueue_turn(run, ArchiveImport, row.pk)
    return False


def _prepare(row: ArchiveImport, folder: Path, lock: int) -> None:
    """Unpack the archive and store the number of its posts. Raises ArchiveError and ReaderError."""
    for path in folder.iterdir():  # left by a killed worker
        if path.name not in (ARCHIVE, LOCK):
            path.unlink()
    found = reader.read(folder / ARCHIVE, folder, lock)
    row.total = min(found, finding.ITEMS)
    if found > finding.ITEMS:
        row.left_out["many"] = found - finding.ITEMS
    row.save(update_fields=["total", "left_out"])
    (folder / ARCHIVE).unlink(missing_ok=True)


def _finish(row: ArchiveImport, failure: str = "") -> None:
    state = ImportState.FAILED if failure else ImportState.DONE
    ArchiveImport.objects.filter(pk=row.pk, finished_at=None).update(state=state, failure=failure, finished_at=Now())


# --- One part --------------------------------------------------------------------------------------------
@dataclass
class _PostsPart(ImportTally):
    posts: list[Post] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    """By origin: where a post stands in the part."""
    media: dict[str, StoredMedia] = field(default_factory=dict)
    """Stored media, by the post's origin."""
    items: dict[str, Item] = field(default_factory=dict)
    """By origin: items that were imported, or that posts of this part reply to or quote."""


def _import_posts(row: ArchiveImport, folder: Path, posts: ArchiveOutbox, until: float) -> None:
    """Import the next posts, in one transaction with the progress. Ends before media that would begin after `until`,
    but not before the first. Raises StoppedError.
    """
    raw = posts.items(row.done, PART)
    part = _parse_posts(row, raw)
    media: dict[str, StoredMedia] = {}
    for post in part.posts:
        if post.media and not (post.parent and _parent(part, post) is None):
            if media and time.monotonic() > until:
                raw = raw[: part.places[post.origin]]
                part = _parse_posts(row, raw)
                break
            ArchiveImport.objects.filter(pk=row.pk).update(tried_at=Now())  # pictures take time
            media[post.origin] = store_media(row.user_id, folder, post)
    part.media = media
    for post in part.posts:
        for why in media[post.origin].left_out if post.origin in media else ():
            part.leave_out(why, post.address)
    with transaction.atomic():
        locked, user = _lock_import(row)
        for post in part.posts:
            try:
                _import_post(row, user, part, post)
            except LeftOutError as error:
                part.leave_out(error.why, post.address)
        _record_progress(locked, part, len(raw))
    row.done = locked.done


def _lock_import(row: ArchiveImport) -> tuple[ArchiveImport, User]:
    """The import, locked against stopping, and its user. Raises StoppedError."""
    locked = ArchiveImport.objects.select_for_update().filter(pk=row.pk, finished_at=None).first()
    user = User.objects.active().filter(pk=row.user_id).first()
    if locked is None or user is None:
        raise StoppedError
    return locked, user


def _parse_posts(row: ArchiveImport, raw: list[bytes]) -> _PostsPart:
    part = _PostsPart()
    for place, item in enumerate(raw):
        try:
            part.posts.append(post := outbox.post_of(item))
            part.places.setdefault(post.origin, place)
        except LeftOutError as error:
            part.leave_out(error.why, error.address)
    wanted = {digest for post in part.posts for digest in (post.origin, post.parent, post.quoted) if digest}
    known = BroughtItem.objects.filter(user=row.user_id, origin__in=wanted).select_related("item")
    part.items = {one.origin: one.item for one in known}
    new = {}
    for post in part.posts:
        if post.origin in part.items or post.origin in new:
            part.leave_out("before", post.address)
        else:
            new[post.origin] = post
    part.posts = list(new.values())
    return part


def _parent(part: _PostsPart, post: Post) -> Item | Post | None:
    return part.items.get(post.parent) or next((one for one in part.posts if one.origin == post.parent), None)


def _import_post(row: ArchiveImport, user: User, part: _PostsPart, post: Post) -> None:
    parent = part.items.get(post.parent)
    if post.parent and parent is None:
        raise LeftOutError("reply")
    if parent and (parent.status != Status.PUBLISHED or parent.repost_of_id):
        raise LeftOutError("parent")
    pictures, quoted = part.media.get(post.origin), part.items.get(post.quoted)
    visibility = Visibility.SELF if row.is_for_self else post.visibility
    is_quoting = quoted is not None and may_quote(quoted, user) and audience_fits(quoted, user, visibility)
    try:
        with transaction.atomic():
            item = items.publish_past(
                sender=user,
                type=pictures.type if pictures and pictures.rows else "text",
                content=_content(post, pictures),
                written_at=post.written_at,
                modified_at=post.modified_at,
                visibility=visibility,
                extra_info={"imported": True} | ({"language": post.language} if post.language else {}),
                reply_to=parent,
                quote_of=quoted if is_quoting else None,
            )
            BroughtItem.objects.create(user=user, origin=post.origin, item=item)
    except ContentError as error:
        raise LeftOutError("text") from error
    except items.PastTimeError as error:
        raise LeftOutError("time") from error
    except items.HeldError as error:
        raise LeftOutError("rules") from error
    part.items[post.origin] = item
    part.brought += 1
    for what in (*post.lost, *(("quote",) if quoted and not is_quoting else ())):
        part.leave_out(what, post.address)


def _content(post: Post, pictures: StoredMedia | None) -> dict[str, object]:
    content: dict[str, object] = {"text": post.text}
    if post.warning:
        content["warning"] = post.warning
    if post.is_sensitive:
        content["sensitive"] = True
    if pictures and pictures.rows:
        content["media"] = [str(row.pk) for row in pictures.rows]
    return content


def _record_progress(row: ArchiveImport, part: _PostsPart, count: int) -> None:
    came = [part.media[origin] for origin in part.items if origin in part.media]
    row.done += count
    row.brought += part.brought
    row.media += sum(len(found.rows) for found in came)
    row.left_out = dict(Counter(row.left_out) + part.left_out)
    row.notes = [*row.notes, *part.notes][:NOTES]
    row.attempts, row.tried_at = 0, Now()
    row.save(update_fields=["done", "brought", "media", "left_out", "notes", "attempts", "tried_at"])


# --- One part of a list ----------------------------------------------------------------------------------
def _next_list(row: ArchiveImport) -> ListKind | None:
    return next((kind for kind, progress in row.progress().items() if progress.done < progress.total), None)


def _list_part(row: ArchiveImport, kind: ListKind, lists: ArchiveLists) -> None:
    """Import the next entries of a list, in one transaction with the progress. Raises StoppedError."""
    with transaction.atomic():
        locked, user = _lock_import(row)
        progress = locked.progress()[kind]
        notes = listed.import_names(user, kind, lists.entries(kind), progress)
        locked.lists = (locked.lists or {}) | {kind.value: msgspec.to_builtins(progress)}
        locked.notes = [*locked.notes, *notes][:NOTES]
        locked.attempts, locked.tried_at = 0, Now()
        locked.save(update_fields=["lists", "notes", "attempts", "tried_at"])
    row.lists = locked.lists


# --- Upkeep ----------------------------------------------------------------------------------------------
LEFT = """
    SELECT coalesce(tried_at, created_at) FROM moving_archiveimport WHERE finished_at IS NULL
    UNION ALL SELECT NULL FROM moving_archiveimport WHERE finished_at > now() - interval '2 minutes'
"""
"""Rows that need a sweep. Recently ended imports count, because no worker may have removed the files of a stopped
one.
"""


def sweep() -> int:
    """Periodic: queue lost imports, and remove old files and reports."""
    sent = claims.sweep(ArchiveImport, run)
    _delete_old_folders()
    return sent


def _delete_old_folders() -> None:
    place = folder_of("")
    folders = {path.name: path for path in place.iterdir()} if place.is_dir() else {}
    running = set(ArchiveImport.objects.filter(folder__in=folders, finished_at=None).values_list("folder", flat=True))
    # Ended rows too: the row of a folder may be newer than the first query.
    ended = set(
        ArchiveImport.objects.filter(folder__in=folders, finished_at__isnull=False).values_list("folder", flat=True)
    )
    for name in folders.keys() - running:
        path = folders[name]
        try:
            if name in ended or path.stat().st_mtime < time.time() - ORPHAN_SECONDS:
                with _folder_lock(path):
                    shutil.rmtree(path, ignore_errors=True)
        except (ImportTakenError, OSError):
            continue
