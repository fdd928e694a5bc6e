"""Converts uploaded videos in the lane of strangers' files, one at a time on a machine.

A `VideoConversion` row is the queue, and a worker claims it while it converts. The member whose videos took least of
the last day is next. Whatever stops, the next run begins that video anew, `TRIES` times.

See docs/decisions.md: A post waits for its video as a scheduled post.
"""

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.db import transaction
from django.db.models import Sum
from django.db.models.functions import Now

from media import posters
from media.actions import (
    DAY,
    BlockedError,
    MediaError,
    check_blocked,
    copy_file,
    delete_stored,
    drop_originals,
    schedule_moves,
    temporary_path,
    unusable_video,
    upload,
    video_limits,
)
from media.converter import ConvertedVideo, convert
from media.decoder import DecoderBusyError, DecoderError, is_locked
from media.files import ORIGINAL, StoreError, new_name
from media.models import FileMove, MediaFile, MediaState, VideoConversion, file_names
from media.offering import reports_blocked_media
from media.signals import video_processed
from media.store import store
from storage.claims import CLAIM_LIFE
from storage.connections import fetch
from storage.queue import only_if_rows, task

logger = logging.getLogger(__name__)

TRIES = 3
"""How often a video is begun. A worker that died took one."""
BUSY_TRIES = 24
"""How often `upload_at_once` tries while other videos are converted. Each waits `MEDIA_WAIT_SECONDS`."""
AGAIN = timedelta(seconds=60)
"""When a video is tried again while the store does not answer."""
REPORT_SECONDS = 2.0
"""How often progress is written, and the claim renewed."""
POLL_SECONDS = 0.5
LIMIT_SECONDS = 3_000
"""Seconds after which a task is killed. The decoder ends earlier: after `WAIT_FACTOR` times its processor seconds."""
SOONEST = 200
"""The longest waiting videos, of which the next is chosen."""

UNCLAIMED = f"finished_at IS NULL AND (tried_at IS NULL OR tried_at < now() - interval '{CLAIM_LIFE.seconds} seconds')"
WAITING = f"SELECT created_at FROM media_videoconversion WHERE {UNCLAIMED}"
CLAIM = f"""
    UPDATE media_videoconversion SET tried_at = now(), attempts = attempts + 1 WHERE media_id = (
        SELECT next.media_id FROM media_videoconversion next CROSS JOIN LATERAL (
            SELECT sum(seconds) AS seconds, count(*) FILTER (WHERE finished_at IS NULL AND NOT ({UNCLAIMED})) AS running
            FROM media_videoconversion own WHERE own.owner_id = next.owner_id AND created_at > now() - interval '1 day'
        ) AS used
        WHERE next.media_id IN (
            SELECT media_id FROM media_videoconversion WHERE {UNCLAIMED} ORDER BY media_id LIMIT {SOONEST}
        )
        ORDER BY used.running, used.seconds, next.media_id LIMIT 1 FOR UPDATE OF next SKIP LOCKED
    ) AND {UNCLAIMED}
    RETURNING media_id
"""


class EndedError(Exception):
    """The video was deleted while it was converted."""


# --- The queue -------------------------------------------------------------------------------------------
@task("media.convert_videos", time_limit=LIMIT_SECONDS)
@only_if_rows("media.convert_videos", WAITING, work="videos")
def convert_waiting() -> bool:
    """Convert one video, and have another task do the next. False if this machine is at one, or none waits."""
    with _only_one_on_this_machine() as is_free:
        claimed = fetch(CLAIM) if is_free else []
        if not claimed:
            return False
        process(VideoConversion.objects.get(pk=claimed[0][0]))
    convert_waiting.delay()
    return True


@contextlib.contextmanager
def _only_one_on_this_machine() -> Iterator[bool]:
    """Whether this process may convert: it holds a locked file, which a killed process frees."""
    folder = settings.MEDIA_DIR / "places"
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / "video.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield is_locked(handle)
    finally:
        os.close(handle)


def upload_at_once(*, owner_id: int, file: IO[bytes], **fields: Any) -> MediaFile:
    """As `media.actions.upload`, but a video is converted when this returns, whatever its owner's budget."""
    row = upload(owner_id=owner_id, file=file, is_awaited=True, **fields)
    for _try in range(BUSY_TRIES):
        if row.state == MediaState.PROCESSING:
            process(VideoConversion.objects.get(pk=row.pk), is_counted=False)
            row.refresh_from_db()
    if row.state == MediaState.PROCESSING:
        raise StoreError("the video could not be stored")
    if row.state == MediaState.FAILED:
        raise unusable_video(row.failure)
    return row


def wait_for(row: MediaFile, seconds: float) -> MediaFile:
    """The row when its video is processed, or after these seconds."""
    until = time.monotonic() + seconds
    while row.state == MediaState.PROCESSING and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
        row.refresh_from_db()
    return row


# --- One video -------------------------------------------------------------------------------------------
def process(conversion: VideoConversion, *, is_counted: bool = True) -> None:
    """Convert a claimed video, and tell the packages above."""
    row = MediaFile.objects.filter(pk=conversion.pk).first()
    if row is not None and row.state == MediaState.PROCESSING:
        try:
            _convert(conversion, row, is_counted=is_counted)
        except EndedError:
            row = None
        except (StoreError, DecoderBusyError) as error:
            logger.warning("the video %s is converted later: %s", conversion.pk, error)
            conversion.release(rest=AGAIN)
            young = VideoConversion.objects.filter(pk=conversion.pk, created_at__gt=Now() - DAY)
            young.update(attempts=0)  # the store's fault, not the video's
            return
    if row is not None:
        video_processed.send(sender=MediaFile, media_id=row.pk)
    with transaction.atomic():
        drop_originals([conversion.pk])


def _convert(conversion: VideoConversion, row: MediaFile, *, is_counted: bool) -> None:
    used = _used_seconds(conversion.owner_id) if is_counted else 0.0
    most = min(settings.MEDIA_VIDEO_CPU_SECONDS, settings.MEDIA_VIDEO_DAY_SECONDS - used)
    if conversion.attempts > TRIES or most <= 0:
        _fail(row, "stopped" if conversion.attempts > TRIES else "budget")
        return
    began = time.monotonic()
    with temporary_path() as draft:
        source = Path(f"{draft}original")
        try:
            with store().open(f"{conversion.original}.{ORIGINAL}") as file:
                copy_file(file, source)
            video = convert(source, draft, video_limits(most), _reporter(conversion))
        except FileNotFoundError:
            _fail(row, "stopped")
        except DecoderError as error:
            if error.reason == "full":
                raise StoreError("the disk is full") from error
            if is_counted:
                _count(conversion, min(most, time.monotonic() - began))
            is_cut = error.reason == "time" and most < settings.MEDIA_VIDEO_CPU_SECONDS
            _fail(row, "budget" if is_cut else error.reason)
        else:
            if is_counted:
                _count(conversion, video.seconds)
            try:
                _store(row, video, draft, _poster_of(row, draft))
            except BlockedError:
                _fail(row, "blocked")


def _used_seconds(owner_id: int) -> float:
    today = VideoConversion.objects.filter(owner_id=owner_id, created_at__gt=Now() - DAY)
    return float(today.aggregate(seconds=Sum("seconds", default=0.0))["seconds"])


def _count(conversion: VideoConversion, seconds: float) -> None:
    VideoConversion.objects.filter(pk=conversion.pk).update(seconds=seconds)


def _poster_of(row: MediaFile, draft: str) -> posters.Poster:
    """The video's poster. Empty if its owner sent one."""
    if row.small_ext:
        return posters.Poster([], {})
    try:
        return posters.poster_of_draft(draft)
    except MediaError:
        return posters.NONE
    except DecoderBusyError:  # media.resizing makes it later
        return posters.Poster([], {})


def _reporter(conversion: VideoConversion) -> Callable[[int], None]:
    """Writes how far a conversion is, and renews its claim. It raises EndedError if the video was deleted."""
    last = -REPORT_SECONDS

    def report(percent: int) -> None:
        nonlocal last
        if time.monotonic() - last < REPORT_SECONDS:
            return
        last = time.monotonic()
        if not VideoConversion.objects.filter(pk=conversion.pk, finished_at=None).update(tried_at=Now()):
            raise EndedError
        MediaFile.objects.filter(pk=conversion.pk, state=MediaState.PROCESSING).update(progress=min(percent, 99))

    return report


def _fail(row: MediaFile, reason: str) -> None:
    processing = MediaFile.objects.filter(pk=row.pk, state=MediaState.PROCESSING)
    processing.update(state=MediaState.FAILED, failure=reason)


@reports_blocked_media
def _store(row: MediaFile, video: ConvertedVideo, draft: str, poster: posters.Poster) -> None:
    """Store the files of a converted video, and write its facts. Raises EndedError, and BlockedError for its poster.

    The files get a new name: another worker, if this one was taken for dead, may be at the same video.
    """
    name = new_name()
    names = file_names(name, video.ext, **posters.files_in(poster.facts))
    try:
        for source, stored in zip([Path(f"{draft}video"), *poster.files], names, strict=True):
            store().save(source, stored)
        with transaction.atomic():
            fresh = MediaFile.objects.select_for_update().filter(pk=row.pk, state=MediaState.PROCESSING).first()
            if fresh is None:
                raise EndedError
            if not fresh.small_ext:
                fresh.phash = poster.facts.get("phash")
                check_blocked(fresh, is_face=False)
            _finish(fresh, name, video, poster.facts)
    except BaseException:
        delete_stored(names)
        raise


def _finish(row: MediaFile, name: str, video: ConvertedVideo, facts: dict[str, Any]) -> None:
    moves = [FileMove(name=row.name, to=name, ext=row.captions)] if row.captions else []
    if row.small_ext:  # its owner sent a poster
        moves.append(FileMove(name=row.name, to=name, ext="", small_ext=row.small_ext, widths=row.widths))
        delete_stored(file_names(name, "", **posters.files_in(facts)))
        facts = {}
    written = {fact: getattr(video, fact) for fact in ("ext", "width", "height", "duration", "size")}
    written |= {"name": name, "state": MediaState.READY, "progress": 100}
    for column, value in (written | facts).items():
        setattr(row, column, value)
    schedule_moves(moves)
    row.save()
