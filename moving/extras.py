"""The profile of an archive, for the parts of it that are empty here, and its bookmarks of own posts."""

from pathlib import Path
from typing import Any

import msgspec
from django.core.exceptions import ValidationError

from accounts.actions import edit_profile
from accounts.faces import set_face
from accounts.models import User
from items.actions import bookmark
from items.models import Status
from media.actions import MediaError
from media.models import Use
from moving.markup import text_of
from moving.media import patiently
from moving.models import ArchiveImport, BroughtItem
from moving.outbox import digest

ACTOR_BYTES = 1 << 20
BOOKMARK_BYTES = 8 << 20
BOOKMARKS = 20_000
TOGETHER = 1_000
NAME_LENGTH = 50
BIO_LENGTH = 500


class _Actor(msgspec.Struct):
    name: Any = ""
    summary: Any = ""


class _Bookmarks(msgspec.Struct):
    orderedItems: Any = ()  # noqa: N815 (the key)


def bring(row: ArchiveImport, folder: Path) -> None:
    """Bring both, in the end; doing it again changes nothing."""
    user = User.objects.active().filter(pk=row.user_id).first()
    if user is None:
        return
    counts = {"bookmark": _bookmarks(user, folder)}
    if row.takes_profile:
        counts["profile"] = _words(user, folder) + _faces(user, folder)
    row.refresh_from_db(fields=["left_out"])
    row.left_out |= {why: count for why, count in counts.items() if count}
    row.save(update_fields=["left_out"])


def _read(path: Path, most: int, kind: type[Any]) -> Any:
    """The object of a file; an empty one where it is not there, too long, or something else."""
    try:
        data = path.read_bytes() if path.stat().st_size <= most else b""
        return msgspec.json.decode(data, type=kind)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return kind()


def _bookmarks(user: User, folder: Path) -> int:
    """Keep the user's own posts that they had kept; how many bookmarks are of posts that are not here."""
    said = _read(folder / "bookmarks.json", BOOKMARK_BYTES, _Bookmarks).orderedItems
    addresses = [one for one in said if isinstance(one, str)][:BOOKMARKS] if isinstance(said, list) else []
    origins = list(dict.fromkeys(map(digest, addresses)))
    kept = 0
    for start in range(0, len(origins), TOGETHER):
        part = origins[start : start + TOGETHER]
        known = BroughtItem.objects.filter(user=user, origin__in=part, item__status=Status.PUBLISHED)
        found = {one.origin: one.item for one in known.select_related("item")}
        for origin in part:
            if origin in found:
                bookmark(user=user, item=found[origin])
        kept += len(found)
    return len(origins) - kept


def _words(user: User, folder: Path) -> int:
    """Take name and bio where the user has none; how many of them the site does not take."""
    actor = _read(folder / "actor.json", ACTOR_BYTES, _Actor)
    name = " ".join(actor.name.split())[:NAME_LENGTH] if isinstance(actor.name, str) else ""
    bio = text_of(actor.summary)[:BIO_LENGTH] if isinstance(actor.summary, str) else ""
    refused = 0
    for field, said in (("display_name", name), ("bio", bio)):
        if said and not getattr(user, field):
            try:
                edit_profile(user=user, **{field: said})  # type: ignore[arg-type]  # both are texts
            except ValidationError:
                refused += 1
                user.refresh_from_db()
    return refused


def _faces(user: User, folder: Path) -> int:
    """Take avatar and header where the user has none; how many of them the site does not take."""
    refused = 0
    for name, use, there in (("avatar", Use.AVATAR, user.avatar), ("header", Use.BANNER, user.banner)):
        path = folder / name
        if there or not path.is_file():
            continue
        with path.open("rb") as file:
            try:
                patiently(lambda file=file, use=use: set_face(user=user, use=use, file=file))  # type: ignore[misc]
            except MediaError:
                refused += 1
    return refused
