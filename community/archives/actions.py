"""The verbs of imports of archives: begin one, and stop it."""

import secrets
import shutil
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from accounts.models import User
from community.archives.models import ArchiveImport, BroughtItem, State
from storage.queue import enqueue

ARCHIVE = "archive"
"""The name of the uploaded file in its folder."""
A_DAY = 5
"""Archives that a user may bring in a day."""
REPORTS = 20
"""Imports of one user that are kept."""
CHUNK_BYTES = 1 << 20


class BusyError(Exception):
    """The user's last archive is still being imported."""


class CapError(Exception):
    """The user brought `A_DAY` archives within a day."""


def begin(*, user: User, file: IO[bytes], is_for_self: bool = False, takes_profile: bool = False) -> ArchiveImport:
    """Keep an uploaded archive, and leave it to the workers. Raises BusyError, CapError, and OSError where the disk
    takes no more.
    """
    recent = ArchiveImport.objects.filter(user=user, created_at__gt=Now() - timedelta(days=1))
    if recent.count() >= A_DAY:
        raise CapError
    folder = folder_of(secrets.token_hex(16))
    folder.mkdir(mode=0o700, parents=True)
    try:
        _keep(file, folder / ARCHIVE)
        with transaction.atomic():
            made = ArchiveImport.objects.create(
                user=user, folder=folder.name, is_for_self=is_for_self, takes_profile=takes_profile
            )
            transaction.on_commit(lambda: enqueue("moving.run_import", made.pk))
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, IntegrityError) and "archive_import_at_a_time" in str(error):
            raise BusyError from error
        raise
    old = ArchiveImport.objects.filter(user=user).order_by("-pk").values_list("pk", flat=True)[REPORTS:]
    ArchiveImport.objects.filter(pk__in=list(old)).delete()
    return made


def cancel(*, user: User, import_id: int) -> bool:
    """Stop a running import; True if it ran. What came in stays, and the worker at it ends with its next part."""
    running = ArchiveImport.objects.filter(user=user, pk=import_id, finished_at=None)
    return bool(running.update(state=State.CANCELLED, finished_at=Now()))


def purge(*, user: User, limit: int) -> int:
    """Remove what is known of the imports of a deleted account, at most `limit` posts; how many rows."""
    brought = BroughtItem.objects.filter(user=user).values_list("pk", flat=True)[:limit]
    gone: tuple[int, Any] = BroughtItem.objects.filter(pk__in=list(brought)).delete()
    imports: tuple[int, Any] = ArchiveImport.objects.filter(user=user).delete()
    return gone[0] + imports[0]


def folder_of(name: str) -> Path:
    """Where the files of an import lie."""
    place: Path = settings.IMPORTS_DIR / name
    return place


def _keep(file: IO[bytes], path: Path) -> None:
    """Have an upload under another name: a second name of its file where it has one on the same disk."""
    name = getattr(file, "temporary_file_path", None)
    if name is not None:
        try:
            path.hardlink_to(name())
            return
        except OSError:  # on another disk
            pass
    file.seek(0)
    with path.open("xb") as copy:
        shutil.copyfileobj(file, copy, CHUNK_BYTES)
