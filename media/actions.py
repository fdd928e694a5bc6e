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
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any, NamedTuple

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from media.converter import VideoLimits, convert, probe, takes_videos
from media.decoder import DecodedPicture, DecoderError, decoder, decoder_slot
from media.files import StoreError, new_name
from media.kinds import kind_of
from media.models import DESCRIPTION_LENGTH, FileMove, MediaFile, MediaKind, Use, file_names
from media.offering import BlockedMediaError, check_allowed, reports_blocked_media
from media.signals import medium_described
from media.store import incoming, store
from storage.queue import task
from web.letters import is_blank
from web.refusals import ConflictError, RefusalError
from web.strict_json import check_text

logger = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 20
PICTURES_AN_ITEM = 4
FRAMES = 500
"""Most frames of an animation."""
SOON = VideoLimits(seconds=60.0)
"""Limits of a video that is converted while its sender waits."""
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
POSTER_FACTS = ("small_ext", "small_width", "small_height", "widths", "blurhash")
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
) -> MediaFile:
    """Check, rewrite and store a file. Returns its unused row, or that of an earlier call with this `key`.

    Raises MediaError, KeyConflictError, DecoderBusyError and StoreError.
    """
    return store_file(owner_id=owner_id, file=file, description=description, focus=focus, key=key, shape=shape)


def store_file(
    *,
    owner_id: int,
    file: IO[bytes],
    description: str = "",
    focus: tuple[float, float] = (0.0, 0.0),
    key: str = "",
    shape: PictureLimits = POSTED,
) -> MediaFile:
    """As `upload`, for a file that nobody sent: nobody is told of rules that block it."""
    kind = check_file(file, pictures_only=shape is not POSTED)
    description = clean_description(description)
    digest = _digest(file)
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
    with temporary_path() as draft:
        files = (
            _process_picture(row, file, draft, shape) if kind == MediaKind.IMAGE else _process_video(row, file, draft)
        )
        row.name = new_name(has_sizes=bool(row.widths))
        kept = list(zip(files, row.files, strict=True))
        try:
            for source, name in kept:
                store().save(source, name)
            with transaction.atomic():
                check_blocked(row, is_face=shape is not POSTED)
                row.save(force_insert=True)
        except BaseException as error:
            delete_stored(name for _source, name in kept)
            if isinstance(error, IntegrityError) and key and (made := _earlier_upload(owner_id, key, digest)):
                return made
            raise
    return row


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
    return _digest(file), phash


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
            _("The description can have up to %(count)d characters.") % {"count": DESCRIPTION_LENGTH}
        )
    return "" if is_blank(text) else text


def _size(file: IO[bytes]) -> int:
    return file.seek(0, os.SEEK_END)


def _digest(file: IO[bytes]) -> str:
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
    _copy(file, source)
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
    count = {"count": settings.MEDIA_PIXELS // 1_000_000}
    if reason == "pixels":
        return TooLargeError(_("Pictures can have up to %(count)d megapixels. Choose a smaller one.") % count)
    if reason == "frames":
        return TooLargeError(
            _("Animations can have up to %(frames)d frames and %(count)d megapixels in total.")
            % (count | {"frames": FRAMES})
        )
    if reason == "memory":
        return TooLargeError(_("This picture is too complex. Save it smaller, or as JPEG."))
    return MediaError(_("This picture is damaged or incomplete. Try another one."))


def _process_video(row: MediaFile, file: IO[bytes], draft: str) -> list[Path]:
    source = Path(f"{draft}source")
    _copy(file, source)
    try:
        probe(source, SOON)
        film = convert(source, draft, SOON)
    except DecoderError as error:
        raise video_error(error) from error
    row.ext, row.width, row.height, row.duration, row.size = film.ext, film.width, film.height, film.duration, film.size
    return [Path(f"{draft}video"), *_process_poster(row, Path(f"{draft}poster"), f"{draft}poster.")]


def _process_poster(row: MediaFile, poster: Path, draft: str) -> list[Path]:
    with poster.open("rb") as file:
        picture = decode_picture(file, draft, POSTER)
    for name in POSTER_FACTS:
        setattr(row, name, getattr(picture, name))
    _whole, *files = file_names(draft.removesuffix("."), picture.ext, picture.small_ext, picture.widths)
    return [Path(name) for name in files]


def video_error(error: DecoderError) -> Exception:
    """The answer to a video that was not converted."""
    if error.reason == "full":
        return StoreError("the disk is full")
    return MediaError(_("This video doesn't work here. %(reason)s") % {"reason": _video_refusal(error.reason)})


def _video_refusal(reason: str) -> str:
    minutes = int(VideoLimits().longest // 60)
    return {
        "pictures": _("It has no picture, or its format is not H.264, HEVC, VP8, VP9 or AV1."),
        "sides": _("It's larger than 4096 by 2304 pixels."),
        "sound": _("The format of its sound is not AAC, MP3, Opus, Vorbis or PCM."),
        "minutes": ngettext("It's longer than %(count)d minute.", "It's longer than %(count)d minutes.", minutes)
        % {"count": minutes},
        "time": _("It takes too long to convert. Make it shorter, or save it as H.264 in MP4."),
        "memory": _("It takes too much memory to convert. Save it as H.264 in MP4."),
        "output": _("It becomes too large. Make it shorter."),
    }.get(reason, _("It's damaged or incomplete."))


def _copy(file: IO[bytes], path: Path) -> None:
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
    return len(rows)


# --- Withdrawing -----------------------------------------------------------------------------------------
def delete_media(rows: Sequence[MediaFile]) -> None:
    """Delete media. Files go after the commit."""
    MediaFile.objects.filter(pk__in=[row.pk for row in rows]).delete()
    _plan_moves(rows, lambda _row: "")


def rename(rows: Sequence[MediaFile]) -> None:
    """Rename files in the caller's transaction."""
    _plan_moves(rows, lambda row: new_name(has_sizes=bool(row.widths)))
    MediaFile.objects.bulk_update(rows, ["name"])


def _plan_moves(rows: Sequence[MediaFile], new: Callable[[MediaFile], str]) -> None:
    moves = []
    for row in rows:
        to = new(row)
        moves.append(FileMove(name=row.name, to=to, ext=row.ext, small_ext=row.small_ext, widths=row.widths))
        if row.captions:
            moves.append(FileMove(name=row.name, to=to, ext=row.captions))
        row.name = to or row.name
    _schedule_moves(moves)


def drop_captions(row: MediaFile) -> None:
    """Remove a captions file. The caller saves the row."""
    if row.captions:
        _schedule_moves([FileMove(name=row.name, ext=row.captions)])


def _schedule_moves(moves: Sequence[FileMove]) -> None:
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
