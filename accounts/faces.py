"""Avatars and banners: pictures that a user has of themself. A user keeps their facts in their own row, so no page asks
one statement more for them.
"""

from collections.abc import Iterable, Mapping
from typing import IO, Any

import msgspec
from django.db import transaction

from accounts.models import User
from media import actions
from media.actions import Shape
from media.models import MediaFile, Use
from media.objects import entry_of

SHAPES = {
    Use.AVATAR: Shape(longest=400, small=160, is_square=True, is_still=True),
    Use.BANNER: Shape(longest=1500, small=640, is_square=False, is_still=True),
}
FIELDS = {Use.AVATAR: "avatar", Use.BANNER: "banner"}


def set_face(*, user: User, use: Use, file: IO[bytes]) -> User:
    """Give a user an avatar or a banner; the one before goes. An avatar is cut to a square from its middle. Raises what
    media.actions.upload does.
    """
    new = actions.upload(owner_id=user.pk, file=file, shape=SHAPES[use])
    return _replace(user, use, new)


def remove_face(*, user: User, use: Use) -> User:
    """Take a user's avatar or banner away; one that is drawn stands in its place."""
    return _replace(user, use, None)


@transaction.atomic
def _replace(user: User, use: Use, new: MediaFile | None) -> User:
    locked = User.objects.select_for_update(no_key=True).filter(pk=user.pk, deleted_at=None).first()
    if locked is None:
        return user
    _forget([getattr(locked, FIELDS[use])])
    facts: dict[str, Any] | None = None
    if new is not None:
        MediaFile.objects.filter(pk=new.pk).update(use=use)
        facts = msgspec.to_builtins(entry_of(new))
    User.objects.filter(pk=user.pk).update(**{FIELDS[use]: facts})
    setattr(user, FIELDS[use], facts)
    return user


def forget_faces(user: User) -> None:
    """Remove avatar and banner of a user who goes, in the caller's transaction; the row is the caller's to save."""
    _forget([user.avatar, user.banner])
    user.avatar = user.banner = None


def _forget(faces: Iterable[Mapping[str, Any] | None]) -> None:
    """Remove the media of these facts for good."""
    ids = [int(facts["id"]) for facts in faces if facts]
    if ids:
        actions.forget(list(MediaFile.objects.select_for_update().filter(pk__in=ids)))
