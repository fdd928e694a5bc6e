"""Fills empty parts of the profile from an archive."""

from pathlib import Path
from typing import Any

import msgspec
from django.core.exceptions import ValidationError

from accounts.actions import edit_profile
from accounts.faces import set_face
from accounts.models import User
from accounts.profile_fields import LABEL_LENGTH, MOST, TEXT_LENGTH, Pair
from community.archives.markup import text_of
from community.archives.media import retry_while_busy
from community.archives.models import ArchiveImport
from media.actions import MediaError
from media.models import Use
from web.letters import beginning

ACTOR_BYTES = 1 << 20
NAME_LENGTH = 50
BIO_LENGTH = 500


class _Actor(msgspec.Struct):
    name: Any = ""
    summary: Any = ""
    attachment: Any = ()


def import_extras(row: ArchiveImport, folder: Path) -> None:
    """Fill empty parts of the profile. Can be repeated."""
    user = User.objects.active().filter(pk=row.user_id).first()
    if user is None or not row.takes_profile:
        return
    refused = _import_texts(user, folder) + _import_faces(user, folder)
    row.refresh_from_db(fields=["left_out"])
    row.left_out |= {"profile": refused} if refused else {}
    row.save(update_fields=["left_out"])


def _actor(path: Path) -> _Actor:
    try:
        data = path.read_bytes() if path.stat().st_size <= ACTOR_BYTES else b""
        return msgspec.json.decode(data, type=_Actor)
    except (OSError, msgspec.MsgspecError, RecursionError):
        return _Actor()


def _import_texts(user: User, folder: Path) -> int:
    actor = _actor(folder / "actor.json")
    name = beginning(" ".join(actor.name.split()), NAME_LENGTH) if isinstance(actor.name, str) else ""
    bio = beginning(text_of(actor.summary), BIO_LENGTH) if isinstance(actor.summary, str) else ""
    refused = 0
    for field, said in (("display_name", name), ("bio", bio)):
        if said and not getattr(user, field):
            try:
                edit_profile(user=user, **{field: said})  # type: ignore[arg-type]  # both are texts
            except ValidationError:
                refused += 1
                user.refresh_from_db()
    if (pairs := _pairs(actor)) and not user.profile_fields:
        try:
            edit_profile(user=user, fields=pairs)
        except ValidationError:
            refused += 1
    return refused


def _pairs(actor: _Actor) -> list[Pair]:
    found = actor.attachment if isinstance(actor.attachment, list) else []
    named = [(one.get("name"), one.get("value")) for one in found if isinstance(one, dict)]
    texts = [
        (text_of(name), text_of(value)) for name, value in named if isinstance(name, str) and isinstance(value, str)
    ]
    pairs = [(beginning(name, LABEL_LENGTH), beginning(value, TEXT_LENGTH)) for name, value in texts]
    return [pair for pair in pairs if all(pair)][:MOST]


def _import_faces(user: User, folder: Path) -> int:
    refused = 0
    for name, use, there in (("avatar", Use.AVATAR, user.avatar), ("header", Use.BANNER, user.banner)):
        path = folder / name
        if there or not path.is_file():
            continue
        with path.open("rb") as file:
            try:
                retry_while_busy(lambda file=file, use=use: set_face(user=user, use=use, file=file))  # type: ignore[misc]
            except MediaError:
                refused += 1
    return refused
