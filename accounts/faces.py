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
CROPPED = {Use.AVATAR: (400, 400), Use.BANNER: (1500, 500)}
"""The pixels to which a browser cuts them before they are sent: as pages show them."""
FIELDS = {Use.AVATAR: "avatar", Use.BANNER: "banner"}


def take(*, user: User, use: Use, file: IO[bytes]) -> MediaFile:
    """Keep a picture in the shape of an avatar, which is cut to a square from its middle, or of a banner; `replace`
    gives it to the user. Raises what media.actions.upload does.
    """
    return actions.upload(owner_id=user.pk, file=file, shape=SHAPES[use])


def set_face(*, user: User, use: Use, file: IO[bytes]) -> User:
    """Give a user an avatar or a banner; the one before goes. Raises what media.actions.upload does."""
    return replace(user=user, new={use: take(user=user, use=use, file=file)})


def remove_face(*, user: User, use: Use) -> User:
    """Take a user's avatar or banner away; one that is drawn stands in its place."""
    return replace(user=user, new={use: None})


@transaction.atomic
def replace(*, user: User, new: Mapping[Use, MediaFile | None]) -> User:
    """Give a user what was taken, or nothing, in the place of the avatar or banner before."""
    locked = User.objects.held().filter(pk=user.pk, deleted_at=None).first()
    if locked is None or not new:
        return user
    _forget(getattr(locked, FIELDS[use]) for use in new)
    facts: dict[str, Any] = {}
    for use, medium in new.items():
        if medium is not None:
            MediaFile.objects.filter(pk=medium.pk).update(use=use)
        facts[FIELDS[use]] = msgspec.to_builtins(entry_of(medium)) if medium else None
    User.objects.filter(pk=user.pk).update(**facts)
    for name, value in facts.items():
        setattr(user, name, value)
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
