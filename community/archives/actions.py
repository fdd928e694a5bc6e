import secrets
import shutil
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from accounts.models import User
from community.archives.importing import run
from community.archives.models import ARCHIVE, ArchiveImport, BroughtItem, ImportState, folder_of
from storage import claims

A_DAY = 5
"""Maximum archives per user and day."""
REPORTS = 20
"""Finished imports kept per user."""
CHUNK_BYTES = 1 << 20


class ImportRunningError(Exception):
    """The user's previous archive is still being imported."""


class CapError(Exception):
    """The user uploaded `A_DAY` archives within a day."""


def begin(*, user: User, file: IO[bytes], is_for_self: bool = False, takes_profile: bool = False) -> ArchiveImport:
    """Store an upload and queue its import. Raises ImportRunningError, CapError, and OSError if the disk is full."""
    recent = ArchiveImport.objects.filter(user=user, created_at__gt=Now() - timedelta(days=1))
    if recent.count() >= A_DAY:
        raise CapError
    folder = folder_of(secrets.token_hex(16))
    folder.mkdir(mode=0o700, parents=True)
    try:
        _store_upload(file, folder / ARCHIVE)
        with transaction.atomic():
            made = ArchiveImport.objects.create(
                user=user, folder=folder.name, is_for_self=is_for_self, takes_profile=takes_profile
            )
            transaction.on_commit(lambda: claims.enqueue_turn(run, ArchiveImport, made.pk))
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, IntegrityError) and "archive_import_at_a_time" in str(error):
            raise ImportRunningError from error
        raise
    old = ArchiveImport.objects.filter(user=user).order_by("-pk").values_list("pk", flat=True)[REPORTS:]
    ArchiveImport.objects.filter(pk__in=list(old)).delete()
    return made


def cancel(*, user: User, import_id: int) -> bool:
    """Stop an import at its next part. False if it has ended."""
    running = ArchiveImport.objects.filter(user=user, pk=import_id, finished_at=None)
    return bool(running.update(state=ImportState.CANCELLED, finished_at=Now()))


def purge(*, user: User, limit: int) -> int:
    """Delete a user's imports, and at most `limit` records."""
    brought = BroughtItem.objects.filter(user=user).values_list("pk", flat=True)[:limit]
    gone: tuple[int, Any] = BroughtItem.objects.filter(pk__in=list(brought)).delete()
    imports: tuple[int, Any] = ArchiveImport.objects.filter(user=user).delete()
    return gone[0] + imports[0]


def _store_upload(file: IO[bytes], path: Path) -> None:
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
