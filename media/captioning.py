"""Captions of videos."""

import secrets
import string
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from django.db import transaction
from django.utils.translation import gettext as _

from media import webvtt
from media.actions import MediaError, TooLargeError, UnknownKindError, delete_stored, drop_captions
from media.files import StoreError
from media.models import MediaFile, MediaKind
from media.signals import medium_described
from media.store import incoming, store

SIGNS = string.digits + string.ascii_lowercase


def set_captions(*, owner_id: int, media_id: int, file: IO[bytes]) -> MediaFile:
    """Set or replace captions by a WebVTT file. Raises MediaFile.DoesNotExist, MediaError and StoreError."""
    text = _read(file)
    kept: list[str] = []
    try:
        with transaction.atomic():
            row = _lock_video(owner_id, media_id)
            drop_captions(row)
            row.captions = _random_suffix()
            kept.append(f"{row.name}.{row.captions}")
            _save(text, kept[0])
            row.save(update_fields=["captions"])
    except BaseException:
        delete_stored(kept)
        raise
    medium_described.send(sender=MediaFile, medium=row)
    return row


def remove_captions(*, owner_id: int, media_id: int) -> None:
    """Remove captions. Raises MediaFile.DoesNotExist."""
    with transaction.atomic():
        row = _lock_video(owner_id, media_id)
        if not row.captions:
            return
        drop_captions(row)
        row.captions = ""
        row.save(update_fields=["captions"])
    medium_described.send(sender=MediaFile, medium=row)


def caption_text(facts: Mapping[str, Any]) -> str:
    """The words of captions, or "". Raises StoreError."""
    if not facts.get("captions"):
        return ""
    try:
        with store().open(f"{facts['name']}.{facts['captions']}") as file:
            return webvtt.caption_words(file.read().decode())
    except FileNotFoundError:
        return ""


def _lock_video(owner_id: int, media_id: int) -> MediaFile:
    rows = MediaFile.objects.select_for_update().filter(pk=media_id, owner_id=owner_id, withdrawn_at=None)
    return rows.get(kind=MediaKind.VIDEO)


def _random_suffix() -> str:
    """A random ending for a captions file, because caches keep earlier captions for a year."""
    return f"{''.join(secrets.choice(SIGNS) for _ in range(4))}.vtt"


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    try:
        return webvtt.rewritten(file.read(webvtt.BYTES + 1))
    except webvtt.CaptionsError as error:
        raise _refusal(str(error)) from error


def _refusal(reason: str) -> MediaError:
    if reason == "kind":
        return UnknownKindError(_("Captions must be a WebVTT file (.vtt) that starts with WEBVTT."))
    if reason == "large":
        return TooLargeError(
            _(
                "These captions are too large. Most KB: %(size)d. Most cues: %(cues)d. "
                "Most characters of a cue: %(letters)d."
            )
            % {"size": webvtt.BYTES // 1024, "cues": webvtt.CUES, "letters": webvtt.LETTERS}
        )
    said = {
        "encoding": _("Save the captions as UTF-8."),
        "times": _("A time in these captions can't be read. Each cue needs a line like 00:01.000 --> 00:04.000."),
        "tags": _("These captions have tags that WebVTT doesn't know. Use plain text."),
        "empty": _("These captions are empty."),
    }
    return MediaError(said.get(reason, _("These captions have characters that can't be saved. Remove them.")))


def _save(text: str, name: str) -> None:
    try:
        with tempfile.NamedTemporaryFile(dir=incoming(), suffix=".vtt", delete=False) as draft:
            draft.write(text.encode())
    except OSError as error:
        raise StoreError(str(error)) from error
    path = Path(draft.name)
    try:
        store().save(path, name)
    finally:
        path.unlink(missing_ok=True)
