"""Posters of videos: the pictures that pages show before they play."""

from pathlib import Path
from typing import IO, Any, NamedTuple

from django.db import transaction

from media.actions import (
    POSTER,
    POSTER_FACTS,
    check_blocked,
    check_file,
    decode_picture,
    delete_stored,
    digest_of,
    schedule_moves,
    temporary_path,
    video_limits,
)
from media.converter import convert
from media.files import new_name
from media.models import FileMove, MediaFile, MediaKind, file_names
from media.offering import reports_blocked_media
from media.signals import medium_described
from media.store import store

POSTER_SECONDS = 12.0
"""Most processor seconds for the poster of an old video."""


class Poster(NamedTuple):
    """A poster's files, as drafts, and its facts by their columns."""

    files: list[Path]
    facts: dict[str, Any]


NONE = Poster([], {"failure": "poster"})
"""Of a video that has none."""


def poster_of_draft(draft: str) -> Poster:
    """The poster of a video that was converted there. Raises MediaError, DecoderBusyError and StoreError."""
    with Path(f"{draft}poster").open("rb") as file:
        return _made(file, draft)


def poster_of_video(source: Path, draft: str) -> Poster:
    """The poster of a stored video. Raises DecoderError, MediaError, DecoderBusyError and StoreError."""
    convert(source, draft, video_limits(POSTER_SECONDS))
    return poster_of_draft(draft)


def _made(file: IO[bytes], draft: str) -> Poster:
    base = f"{draft}poster."
    picture = decode_picture(file, base, POSTER)
    names = file_names(base.removesuffix("."), "", picture.small_ext, picture.widths)
    facts = {name: getattr(picture, name) for name in POSTER_FACTS}
    return Poster([Path(name) for name in names], facts)


def files_in(facts: dict[str, Any]) -> dict[str, Any]:
    """The columns that name a poster's files."""
    return {"small_ext": facts.get("small_ext", ""), "widths": facts.get("widths", [])}


@reports_blocked_media
def set_poster(*, owner_id: int, media_id: int, file: IO[bytes]) -> MediaFile:
    """Set or replace a video's poster. Its files get new names, because caches keep the earlier ones. Every rule that
    matches refuses it, as a face: nobody reviews it.

    Raises MediaFile.DoesNotExist, MediaError, DecoderBusyError and StoreError.
    """
    check_file(file, pictures_only=True)
    with temporary_path() as draft:
        poster = _made(file, draft)
        name = new_name()
        names = file_names(name, "", **files_in(poster.facts))
        try:
            for source, stored in zip(poster.files, names, strict=True):
                store().save(source, stored)
            with transaction.atomic():
                picture = MediaFile(owner_id=owner_id, sha256=digest_of(file), phash=poster.facts["phash"])
                check_blocked(picture, is_face=True)
                row = _lock_video(owner_id, media_id)
                _replace(row, name, poster.facts)
        except BaseException:
            delete_stored(names)
            raise
    medium_described.send(sender=MediaFile, medium=row)
    return row


def _replace(row: MediaFile, name: str, facts: dict[str, Any]) -> None:
    old = row.name
    moves = [FileMove(name=old, ext="", small_ext=row.small_ext, widths=row.widths)] if row.small_ext else []
    moves += [FileMove(name=old, to=name, ext=ending) for ending in (row.ext, row.captions) if ending]
    row.name, row.failure = name, ""
    for column, fact in facts.items():
        setattr(row, column, fact)
    schedule_moves(moves)
    row.save(update_fields=["name", "failure", *facts])


def _lock_video(owner_id: int, media_id: int) -> MediaFile:
    rows = MediaFile.objects.select_for_update().filter(pk=media_id, owner_id=owner_id, withdrawn_at=None)
    return rows.get(kind=MediaKind.VIDEO)
