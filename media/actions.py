"""Changes media. A file is checked before its row is written. A FileMove row withdraws files, which are moved after the
commit.
"""

import contextlib
import hashlib
import logging
import math
import os
import secrets
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any, NamedTuple

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, Min, OuterRef, Q, Sum
from django.db.models.functions import Now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from media.converter import VideoLimits, probe, takes_videos
from media.decoder import DecodedPicture, DecoderError, decoder, decoder_slot
from media.files import ORIGINAL, StoreError, new_name
from media.kinds import kind_of
from media.models import (
    DESCRIPTION_LENGTH,
    FileMove,
    MediaFile,
    MediaKind,
    MediaState,
    Use,
    VideoConversion,
    file_names,
)
from media.offering import BlockedMediaError, check_allowed, reports_blocked_media
from media.reasons import video_reason
from media.signals import medium_described
from media.store import incoming, store
from storage.connections import database_now, fetch
from storage.queue import task
from web.letters import is_blank
from web.refusals import ConflictError, RefusalError
from web.strict_json import check_text

logger = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 20
PICTURES_AN_ITEM = 4
FRAMES = 500
"""Most frames of an animation."""
VIDEOS_WAITING = 10
"""Most videos of a member that wait for their conversion."""
BUDGET_LOCK = "SELECT FROM pg_advisory_xact_lock(hashtextextended('media.videos', %s))"
WAITING_SECONDS = 60.0
"""When a member with more may try again."""
DAY = timedelta(days=1)
FAST = 50
"""Most file moves done right after the commit. A task does the rest."""
MOVES = 500
"""Most file moves of a task."""
FAST_SECONDS = 2.0
"""Time limit for these moves within a request. A bucket may be slow."""


class PictureLimits(NamedTuple):
    """Longest sides, and widths of the picture and its sizes, in pixels. `is_still`: only the first frame counts."""

    longest: int = 3840
    width: int = 2048
    small: int = 640
    widths: tuple[int, ...] = (160, 320, 640, 1280)
    is_square: bool = False
    is_still: bool = False


POSTED = PictureLimits()
"""The shape of pictures of items."""
POSTER = PictureLimits(longest=1280, width=1280, small=1280, widths=(160, 320, 640), is_still=True)
POSTER_FACTS = ("small_ext", "small_width", "small_height", "widths", "blurhash", "phash")
"""What is written of a video's poster, whose preview and sizes are stored."""


class MediaError(RefusalError, ValueError):
    """The file is refused. Users see the message."""

    field = "file"


class DescriptionError(MediaError):
    """The description is refused."""

    field = "description"


class UnknownKindError(MediaError):
    """The file type is not accepted."""

    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE


class TooLargeError(MediaError):
    """Too many bytes, pixels or frames."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class UnusableMediaError(MediaError):
    """The media cannot be used for this."""


class KeyConflictError(ConflictError):
    """The idempotency key was used for another file."""

    sentence = "The Idempotency-Key was used for something else."


class BlockedError(MediaError):
    """A site rule blocks the file."""


class VideoBudgetError(RefusalError):
    """The member's videos wait for their conversion, or took the site's time of a day."""

    field = "file"

    def __init__(self, words: str, *, wait: float) -> None:
        super().__init__(words)
        self.wait = max(wait, 1.0)


MOVES_FAILED = 20
"""A round of moves ends after this many failures."""


# --- Taking a file ---------------------------------------------------------------------------------------
@reports_blocked_media
def upload(
    *,
    owner_id: int,
    file: IO[bytes],
    description: str = "",
    focus: tuple[float, float] = (0.0, 0.0),
    key: str = "",
    shape: PictureLimits = POSTED,
    is_awaited: bool = False,
) -> MediaFile:
    """Check, rewrite and store a file. Returns its unused row, or that of an earlier call with this `key`.

    A worker converts a video later, unless the caller does (`is_awaited`, media.processing.upload_at_once). Raises
    MediaError, KeyConflictError, VideoBudgetError, DecoderBusyError and StoreError.
    """
    return store_file(
        owner_id=owner_id,
        file=file,
        description=description,
        focus=focus,
        key=key,
        shape=shape,
        is_awaited=is_awaited,
    )


def store_file(
    *,
    owner_id: int,
    file: IO[bytes],
    description: str = "",
    focus: tuple[float, float] = (0.0, 0.0),
    key: str = "",
    shape: PictureLimits = POSTED,
    is_awaited: bool = False,
) -> MediaFile:
    """As `upload`, for a file that nobody sent: nobody is told of rules that block it."""
    kind = check_file(file, pictures_only=shape is not POSTED)
    description = clean_description(description)
    digest = digest_of(file)
    if key and (made := _earlier_upload(owner_id, key, digest)):
        return made
    row = MediaFile(
        owner_id=owner_id,
        kind=kind,
        sha256=digest,
        description=description,
        focus_x=focus[0],
        focus_y=focus[1],
        key=key,
    )
    original = new_name() if kind == MediaKind.VIDEO else ""
    if original and not is_awaited:
        check_video_budget(owner_id)
    with temporary_path() as draft:
        files = [_prepare_video(row, file, draft)] if original else _process_picture(row, file, draft, shape)
        row.name = new_name(has_sizes=bool(row.widths))
        kept = list(zip(files, [f"{original}.{ORIGINAL}"] if original else row.files, strict=True))
        try:
            for source, name in kept:
                store().save(source, name)
            with transaction.atomic():
                check_blocked(row, is_face=shape is not POSTED)
                row.save(force_insert=True)
                if original:
                    _request_conversion(row, original, is_awaited=is_awaited)
        except BaseException as error:
            delete_stored(name for _source, name in kept)
            if isinstance(error, IntegrityError) and key and (made := _earlier_upload(owner_id, key, digest)):
                return made
            raise
    return row


def _request_conversion(row: MediaFile, original: str, *, is_awaited: bool) -> None:
    """Have a video converted, in the transaction that stores its row. An awaited one is claimed already."""
    from media.processing import convert_waiting  # it stands above

    claim: dict[str, Any] = {"attempts": 1, "tried_at": Now()} if is_awaited else {}
    if not is_awaited:
        fetch(BUDGET_LOCK, [row.owner_id])  # uploads at once: each counts the ones before it
        check_video_budget(row.owner_id)
    VideoConversion.objects.create(media_id=row.pk, owner_id=row.owner_id, original=original, **claim)
    if not is_awaited:
        convert_waiting.delay_on_commit()


def check_blocked(row: MediaFile, *, is_face: bool) -> None:
    """Ask whether a medium may be kept. Raises BlockedError."""
    try:
        check_allowed([row], owner_id=row.owner_id, is_face=is_face)
    except BlockedMediaError as error:
        raise BlockedError(str(error)) from error


def fingerprint(file: IO[bytes]) -> tuple[str, int | None]:
    """A file's SHA-256 and perceptual hash. Raises what `upload` does."""
    kind = check_file(file)
    with temporary_path() as draft:
        phash = decode_picture(file, draft, POSTED).phash if kind == MediaKind.IMAGE else None
    return digest_of(file), phash


def check_file(file: IO[bytes], *, pictures_only: bool = False) -> MediaKind:
    """Check size and type by the first bytes. Raises MediaError."""
    kind = kind_of(file)
    if kind is None:
        raise UnknownKindError(_("Use a picture (JPEG, PNG, WebP, AVIF, GIF, HEIC) or a video (MP4, MOV, MKV, WebM)."))
    if pictures_only and kind != MediaKind.IMAGE:
        raise UnknownKindError(_("Choose a picture: JPEG, PNG, WebP, AVIF, GIF or HEIC."))
    if kind == MediaKind.VIDEO and not takes_videos():
        raise UnknownKindError(_("This site takes no videos. Choose a picture."))
    most = settings.MEDIA_IMAGE_BYTES if kind == MediaKind.IMAGE else settings.MEDIA_VIDEO_BYTES
    if _size(file) > most:
        said = (
            _("Pictures can have up to %(count)d MB. Choose a smaller one.")
            if kind == MediaKind.IMAGE
            else _("Videos can have up to %(count)d MB. Choose a smaller one.")
        )
        raise TooLargeError(said % {"count": most // 2**20})
    return kind


def clean_description(text: str) -> str:
    """The description, "" if nothing of it is visible. Raises DescriptionError."""
    try:
        check_text(text)
    except ValueError as error:
        raise DescriptionError(_("The description has characters that can't be saved. Remove them.")) from error
    if len(text) > DESCRIPTION_LENGTH:
        raise DescriptionError(
            ngettext(
                "The description can have up to %(count)d character.",
                "The description can have up to %(count)d characters.",
                DESCRIPTION_LENGTH,
            )
            % {"count": DESCRIPTION_LENGTH}
        )
    return "" if is_blank(text) else text


def _size(file: IO[bytes]) -> int:
    return file.seek(0, os.SEEK_END)


def digest_of(file: IO[bytes]) -> str:
    """A file's SHA-256."""
    digest = hashlib.sha256()
    file.seek(0)
    while chunk := file.read(CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()


def _earlier_upload(owner_id: int, key: str, digest: str) -> MediaFile | None:
    made = MediaFile.objects.filter(owner_id=owner_id, key=key).first()
    if made and made.sha256 != digest:
        raise KeyConflictError
    return made


@contextlib.contextmanager
def temporary_path() -> Iterator[str]:
    """The beginning of names of new files, which are removed at the end. Raises StoreError."""
    folder = incoming()
    name = f"{secrets.token_hex(16)}."
    try:
        yield str(folder / name)
    except OSError as error:
        raise StoreError(str(error)) from error
    finally:
        for path in folder.glob(f"{name}*"):
            path.unlink(missing_ok=True)


def _process_picture(row: MediaFile, file: IO[bytes], draft: str, shape: PictureLimits) -> list[Path]:
    picture = decode_picture(file, draft, shape)
    for name in DecodedPicture.__struct_fields__:
        setattr(row, name, getattr(picture, name))
    return [Path(name) for name in file_names(draft.removesuffix("."), picture.ext, picture.small_ext, picture.widths)]


def decode_picture(file: IO[bytes], draft: str, shape: PictureLimits) -> DecodedPicture:
    """Write a picture, its preview and its sizes under names that begin so. Raises MediaError, StoreError and
    DecoderBusyError.
    """
    try:
        with decoder_slot():
            return decoder.run(picture_job(file, draft, shape))
    except DecoderError as error:
        if error.reason == "full":
            raise StoreError("the disk is full") from error
        raise _refusal(error.reason) from error


def picture_job(file: IO[bytes], draft: str, shape: PictureLimits) -> dict[str, Any]:
    """The decoder's job of a picture, which is copied."""
    source = Path(f"{draft}source")
    copy_file(file, source)
    return {
        "source": str(source),
        "target": draft,
        **shape._asdict(),
        "pixels": settings.MEDIA_PIXELS,
        "frames": FRAMES,
        "seconds": settings.MEDIA_SECONDS,
        "bytes": settings.MEDIA_VIDEO_BYTES,
    }


def _refusal(reason: str) -> MediaError:
    megapixels = settings.MEDIA_PIXELS // 1_000_000
    if reason == "pixels":
        words = ngettext(
            "Pictures can have up to %(count)d megapixel. Choose a smaller one.",
            "Pictures can have up to %(count)d megapixels. Choose a smaller one.",
            megapixels,
        )
        return TooLargeError(words % {"count": megapixels})
    if reason == "frames":
        return TooLargeError(
            _("This animation is too large. Most frames: %(frames)d. Most megapixels in total: %(count)d.")
            % {"count": megapixels, "frames": FRAMES}
        )
    if reason == "memory":
        return TooLargeError(_("This picture is too complex. Save it smaller, or as JPEG."))
    return MediaError(_("This picture is damaged or incomplete. Try another one."))


def _prepare_video(row: MediaFile, file: IO[bytes], draft: str) -> Path:
    """Check a video, and take its facts. Returns its copy."""
    source = Path(f"{draft}source")
    copy_file(file, source)
    try:
        facts = probe(source, video_limits())
    except DecoderError as error:
        if error.reason == "full":
            raise StoreError("the disk is full") from error
        raise unusable_video(error.reason) from error
    row.width, row.height, row.duration = facts.width, facts.height, facts.duration
    row.state, row.progress, row.size = MediaState.PROCESSING, 0, source.stat().st_size
    return source


def video_limits(seconds: float = 0.0) -> VideoLimits:
    """The limits of a video whose conversion may take so many processor seconds."""
    return VideoLimits(settings.MEDIA_VIDEO_SECONDS, seconds, 2 * settings.MEDIA_VIDEO_BYTES)


def unusable_video(reason: str) -> UnusableMediaError:
    """The refusal of a video, by a reason of media.reasons."""
    return UnusableMediaError(_("This video doesn't work here. %(reason)s") % {"reason": video_reason(reason)})


def check_video_budget(owner_id: int) -> None:
    """Raise VideoBudgetError if too many of the member's videos wait, or took too long today."""
    today = VideoConversion.objects.filter(owner_id=owner_id, created_at__gt=Now() - DAY)
    facts = today.aggregate(
        waiting=Count("pk", filter=Q(finished_at=None)), seconds=Sum("seconds", default=0.0), oldest=Min("created_at")
    )
    if facts["waiting"] >= VIDEOS_WAITING:
        raise VideoBudgetError(_("Wait until your other videos are converted."), wait=WAITING_SECONDS)
    if facts["seconds"] >= settings.MEDIA_VIDEO_DAY_SECONDS:
        wait = facts["oldest"] + DAY - database_now()
        raise VideoBudgetError(video_reason("budget"), wait=wait.total_seconds())


def drop_originals(media_ids: Iterable[int]) -> None:
    """End conversions, in the caller's transaction. Their originals go after the commit."""
    rows = list(VideoConversion.objects.select_for_update().filter(pk__in=list(media_ids), finished_at=None))
    VideoConversion.objects.filter(pk__in=[row.pk for row in rows]).update(finished_at=Now())
    schedule_moves([FileMove(name=row.original, ext=ORIGINAL) for row in rows])


def copy_file(file: IO[bytes], path: Path) -> None:
    """Copy a file onto this disk, or link it."""
    file.seek(0)
    name = getattr(file, "temporary_file_path", None)
    if name is not None:
        with contextlib.suppress(OSError):  # another disk
            path.hardlink_to(name())
            return
    with path.open("wb") as copy:
        shutil.copyfileobj(file, copy, CHUNK_BYTES)


def delete_stored(names: Iterable[str]) -> None:
    """Delete stored files that got no row. The sweep deletes what fails here."""
    for name in names:
        try:
            store().delete(name)
        except (StoreError, OSError) as error:
            logger.warning("an unused media file could not be deleted. The sweep deletes it later: %s", error)


# --- Changing one's own ----------------------------------------------------------------------------------
def describe(
    *, medium: MediaFile, description: str | None = None, focus: tuple[float, float] | None = None
) -> MediaFile:
    """Change description or focus. Raises MediaError."""
    fields: dict[str, Any] = {}
    if description is not None:
        fields["description"] = clean_description(description)
    if focus is not None:
        fields["focus_x"], fields["focus_y"] = focus
    for name, value in fields.items():
        setattr(medium, name, value)
    if fields:
        MediaFile.objects.filter(pk=medium.pk).update(**fields)
        medium_described.send(sender=MediaFile, medium=medium)
    return medium


@transaction.atomic
def remove_unused(*, owner_id: int, media_id: int) -> bool:
    """Remove an unused medium of its owner. False if there is none."""
    row = MediaFile.objects.select_for_update().filter(pk=media_id, owner_id=owner_id, use=Use.NONE).first()
    if row is None:
        return False
    delete_media([row])
    return True


@transaction.atomic
def purge(*, owner_id: int, limit: int) -> int:
    """Remove up to `limit` media of a deleted account."""
    rows = list(MediaFile.objects.select_for_update().filter(owner_id=owner_id).order_by("-pk")[:limit])
    delete_media(rows)
    if not rows:
        VideoConversion.objects.filter(owner_id=owner_id).delete()
    return len(rows)


# --- Withdrawing -----------------------------------------------------------------------------------------
def delete_media(rows: Sequence[MediaFile]) -> None:
    """Delete media. Files go after the commit."""
    MediaFile.objects.filter(pk__in=[row.pk for row in rows]).delete()
    drop_originals(row.pk for row in rows if row.state == MediaState.PROCESSING)
    _plan_moves(rows, lambda _row: "")


def rename(rows: Sequence[MediaFile]) -> None:
    """Rename files in the caller's transaction."""
    _plan_moves(rows, lambda row: new_name(has_sizes=bool(row.widths)))
    MediaFile.objects.bulk_update(rows, ["name"])


def _plan_moves(rows: Sequence[MediaFile], new: Callable[[MediaFile], str]) -> None:
    moves = []
    for row in rows:
        to = new(row)
        if row.ext or row.small_ext:
            moves.append(FileMove(name=row.name, to=to, ext=row.ext, small_ext=row.small_ext, widths=row.widths))
        if row.captions:
            moves.append(FileMove(name=row.name, to=to, ext=row.captions))
        row.name = to or row.name
    schedule_moves(moves)


def drop_captions(row: MediaFile) -> None:
    """Remove a captions file. The caller saves the row."""
    if row.captions:
        schedule_moves([FileMove(name=row.name, ext=row.captions)])


def schedule_moves(moves: Sequence[FileMove]) -> None:
    """Have files renamed or removed after the commit."""
    if moves:
        FileMove.objects.bulk_create(moves)
        transaction.on_commit(partial(_run_moves, [move.pk for move in moves]))


def _run_moves(ids: Sequence[int]) -> None:
    done = move_files(ids[:FAST], FAST_SECONDS)
    if 0 < done < len(ids):
        finish_moves.delay()


@task("media.finish_moves")
def finish_moves() -> int:
    """Do the oldest moves. Another task follows while it helps."""
    ids = list(FileMove.objects.order_by("pk").values_list("pk", flat=True)[:MOVES])
    moved = move_files(ids)
    if moved and FileMove.objects.exists():
        finish_moves.delay()
    return moved


def move_files(ids: Iterable[int], seconds: float = math.inf) -> int:
    """Do these moves and those that wait for them, and return how many. What fails, what another process is doing, and
    what comes after `seconds` or `MOVES_FAILED` failures, stays.
    """
    waiting = deque(sorted(ids))
    done = failed = 0
    until = time.monotonic() + seconds
    while waiting and failed < MOVES_FAILED and time.monotonic() < until:
        try:
            move = _move_file(waiting.popleft())
        except (StoreError, OSError) as error:
            logger.warning("a withdrawn media file could not be moved. It is tried again: %s", error)
            failed += 1
            continue
        if move is not None:
            done += 1
            if move.to:
                waiting.extend(FileMove.objects.filter(name=move.to).order_by("pk").values_list("pk", flat=True))
    return done


@transaction.atomic
def _move_file(move_id: int) -> FileMove | None:
    """Do a move under its lock. A file that was renamed again waits for its earlier move: else it would be lost under
    the name between the two.
    """
    earlier = FileMove.objects.filter(to=OuterRef("name"))
    free = FileMove.objects.select_for_update(skip_locked=True).filter(~Exists(earlier), pk=move_id)
    move = free.first()
    if move is not None:
        targets = file_names(move.to, move.ext, move.small_ext, move.widths) if move.to else []
        for number, name in enumerate(file_names(move.name, move.ext, move.small_ext, move.widths)):
            if targets:
                store().move(name, targets[number])
            else:
                store().delete(name)
        FileMove.objects.filter(pk=move.pk).delete()
    return move
