"""Uploads media of an archive's posts."""

from collections.abc import Callable
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

from community.archives.archive import find_medium
from community.archives.outbox import ArchivedAttachment, Post
from items.models import ItemType
from items.text import MEDIA_AN_ITEM
from media.actions import KeyConflictError, MediaError, check_file
from media.decoder import DecoderBusyError
from media.models import DESCRIPTION_LENGTH, MediaFile, MediaKind
from media.processing import upload_at_once
from web.letters import beginning

Kept = TypeVar("Kept")
TRIES = 24
"""Attempts per file while all decoders are busy. Each waits `MEDIA_WAIT_SECONDS`."""


class StoredMedia(NamedTuple):
    """Stored media of one kind, and why others are left out."""

    type: str
    rows: list[MediaFile]
    left_out: list[str]


def store_media(user_id: int, folder: Path, post: Post) -> StoredMedia:
    """Store up to four pictures, or one video, under a key. Raises StoreError, and DecoderBusyError after minutes."""
    found = StoredMedia(ItemType.IMAGE, [], [])
    for place, attachment in enumerate(post.media):
        path = next((path for one in attachment.paths if (path := find_medium(folder, one))), None)
        if path is None:
            found.left_out.append("missing")
            continue
        with path.open("rb") as file:
            try:
                kind = check_file(file)
                if not _fits(found, kind):
                    found.left_out.append("more")
                    continue
                row = _store_one(user_id, file, attachment, f"archive-{post.origin[:40]}-{place}")
            except (MediaError, KeyConflictError):
                found.left_out.append("refused")
                continue
        found.rows.append(row)
        found = found._replace(type=ItemType.VIDEO if kind == MediaKind.VIDEO else ItemType.IMAGE)
    return found


def _fits(found: StoredMedia, kind: MediaKind) -> bool:
    if not found.rows:
        return True
    return kind == MediaKind.IMAGE and found.type == ItemType.IMAGE and len(found.rows) < MEDIA_AN_ITEM


def _store_one(user_id: int, file: IO[bytes], attachment: ArchivedAttachment, key: str) -> MediaFile:
    words = beginning(attachment.description, DESCRIPTION_LENGTH)
    return retry_while_busy(
        lambda: upload_at_once(owner_id=user_id, file=file, description=words, focus=attachment.focus, key=key)
    )


def retry_while_busy(keep: Callable[[], Kept]) -> Kept:
    """Retry while decoders are busy. Raises DecoderBusyError after minutes."""
    for _ in range(TRIES - 1):
        try:
            return keep()
        except DecoderBusyError:
            continue
    return keep()
