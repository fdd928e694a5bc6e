"""Makes the sizes of pictures and the posters of videos that an earlier version stored without them, the newest first.

Their columns are the queue: whatever stops, the next run goes on. What cannot be decoded keeps the files that it has.
Until its sizes are made, pages offer a picture's preview and whole file.
"""

import logging
import time
from pathlib import Path

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from media.actions import (
    POSTED,
    MediaError,
    PictureLimits,
    check_blocked,
    copy_file,
    delete_stored,
    picture_job,
    temporary_path,
)
from media.decoder import DecoderBusyError, DecoderError, PictureSizes, decoder, decoder_slot
from media.files import FACE_WIDTHS, StoreError
from media.linked import LINKED
from media.models import FileMove, MediaFile, MediaKind, MediaState, Use, file_names
from media.posters import NONE, Poster, files_in, poster_of_video
from media.signals import sizes_made
from media.store import store

logger = logging.getLogger(__name__)

BATCH = 20
"""Most pictures whose facts are written at once."""
FACE = PictureLimits(widths=FACE_WIDTHS, is_square=True)
MOST_COUNTED = 100_000
"""Pictures that `count_lacking` counts at most."""
WAITING = """
    (SELECT created_at FROM media_mediafile WHERE lacks_sizes AND kind = 'image' AND use <> '' LIMIT 1) UNION ALL
    (SELECT created_at FROM media_mediafile
        WHERE kind = 'video' AND state = 'ready' AND small_ext = '' AND failure = '' AND use <> '' LIMIT 1)
"""


def make_sizes() -> int:
    """Make sizes and posters for `MEDIA_SIZES_SECONDS`. Returns their number."""
    until, made, is_stopped = time.monotonic() + settings.MEDIA_SIZES_SECONDS, 0, False
    while not is_stopped and time.monotonic() < until:
        done = []
        try:
            for row in [*lacking_sizes().order_by("-pk")[:BATCH], *lacking_posters().order_by("-pk")[:BATCH]]:
                if time.monotonic() < until:
                    done += [row.pk] if _make(row) else []
        except (StoreError, DecoderBusyError, OSError) as error:
            logger.warning("the sizes and posters of old media are made later: %s", error)
            is_stopped = True
        _finish(done)
        made += len(done)
        is_stopped |= not done
    return made


def lacking_sizes() -> QuerySet[MediaFile]:
    """Pictures without sizes. What nothing uses is swept instead."""
    return MediaFile.objects.filter(lacks_sizes=True, kind=MediaKind.IMAGE).exclude(use=Use.NONE)


def count_lacking() -> int:
    """The number of pictures without sizes, at most `MOST_COUNTED`."""
    return lacking_sizes()[:MOST_COUNTED].count()


def lacking_posters() -> QuerySet[MediaFile]:
    """Videos without a poster."""
    ready = MediaFile.objects.filter(kind=MediaKind.VIDEO, state=MediaState.READY, small_ext="", failure="")
    return ready.exclude(use=Use.NONE)


def _make(row: MediaFile) -> bool:
    """Store what a medium lacks. False if it is being renamed, or was meanwhile: a later run takes it."""
    if FileMove.objects.filter(to=row.name).exists():
        return False
    with temporary_path() as draft:
        made = _sizes_of(row, draft) if row.kind == MediaKind.IMAGE else _poster_of(row, draft)
        saved: list[str] = []
        try:
            with transaction.atomic():
                same = MediaFile.objects.select_for_update().filter(pk=row.pk, name=row.name)
                if not same.exists():
                    return False
                for path, name in zip(made.files, file_names(row.name, "", **files_in(made.facts)), strict=True):
                    saved.append(name)
                    store().save(path, name)
                same.update(**made.facts)
        except BaseException:
            delete_stored(saved)
            raise
    return True


def _sizes_of(row: MediaFile, draft: str) -> Poster:
    try:
        with store().open(row.files[0]) as file, decoder_slot():
            made = decoder.resize(picture_job(file, draft, _shape(row)))
    except (DecoderError, FileNotFoundError):
        made = PictureSizes([], is_moving=False)
    return Poster([Path(f"{draft}{width}.webp") for width in made.widths], msgspec.to_builtins(made))


def _poster_of(row: MediaFile, draft: str) -> Poster:
    source = Path(f"{draft}source")
    try:
        with store().open(row.files[0]) as file:
            copy_file(file, source)
        poster = poster_of_video(source, draft)
        check_blocked(MediaFile(owner_id=row.owner_id, sha256=row.sha256, phash=poster.facts["phash"]), is_face=True)
        return poster
    except (DecoderError, MediaError, FileNotFoundError):
        return NONE


def _shape(row: MediaFile) -> PictureLimits:
    return {Use.AVATAR: FACE, Use.LINK: LINKED}.get(Use(row.use), POSTED)


def _finish(ids: list[int]) -> None:
    """Write the facts where the pictures stand, then take them out of the queue."""
    rows = list(MediaFile.objects.filter(pk__in=ids))
    sizes_made.send(sender=MediaFile, media=rows)
    MediaFile.objects.filter(pk__in=ids).update(lacks_sizes=False)
