"""Avatars and banners. The user's row holds their facts."""

from collections.abc import Iterable, Mapping
from typing import IO, Any

import msgspec
from django.db import transaction

from accounts.models import User
from media import actions
from media.actions import PictureLimits
from media.files import FACE_WIDTHS
from media.models import MediaFile, Use
from media.objects import facts_of_row

SHAPES = {
    Use.AVATAR: PictureLimits(longest=400, small=160, widths=FACE_WIDTHS, is_square=True, is_still=True),
    Use.BANNER: PictureLimits(longest=1500, is_still=True),
}
CROPPED = {Use.AVATAR: (400, 400), Use.BANNER: (1500, 500)}
"""Size to which browsers crop before sending."""
FIELDS = {Use.AVATAR: "avatar", Use.BANNER: "banner"}


def upload_face(*, user: User, use: Use, file: IO[bytes]) -> MediaFile:
    """Upload a picture for `replace_faces`."""
    return actions.upload(owner_id=user.pk, file=file, shape=SHAPES[use])


def set_face(*, user: User, use: Use, file: IO[bytes]) -> User:
    """Replace an avatar or banner."""
    return replace_faces(user=user, new={use: upload_face(user=user, use=use, file=file)})


def remove_face(*, user: User, use: Use) -> User:
    """Remove a user's avatar or banner."""
    return replace_faces(user=user, new={use: None})


@transaction.atomic
def replace_faces(*, user: User, new: Mapping[Use, MediaFile | None]) -> User:
    """Replace or (None) remove avatar and banner."""
    locked = User.objects.locked().filter(pk=user.pk, deleted_at=None).first()
    if locked is None or not new:
        return user
    _delete_media(getattr(locked, FIELDS[use]) for use in new)
    facts: dict[str, Any] = {}
    for use, medium in new.items():
        if medium is not None:
            MediaFile.objects.filter(pk=medium.pk).update(use=use)
        facts[FIELDS[use]] = msgspec.to_builtins(facts_of_row(medium)) if medium else None
    User.objects.filter(pk=user.pk).update(**facts)
    for name, value in facts.items():
        setattr(user, name, value)
    return user


@transaction.atomic
def rename_faces(media: Iterable[MediaFile]) -> None:
    """Give these pictures new addresses where they are an avatar or banner. They have one owner."""
    ids = {row.pk: row.owner_id for row in media if row.use in FIELDS}
    user = User.objects.locked().filter(pk__in=ids.values()).first()
    if user is None:
        return
    shown = {int(facts["id"]): field for field in FIELDS.values() if (facts := getattr(user, field))}
    rows = list(MediaFile.objects.select_for_update().filter(pk__in=ids.keys() & shown.keys()).order_by("pk"))
    actions.rename(rows)
    for row in rows:
        setattr(user, shown[row.pk], msgspec.to_builtins(facts_of_row(row)))
    user.save(update_fields=list(FIELDS.values()))


def forget_faces(user: User) -> None:
    """Remove avatar and banner. The caller saves the row."""
    _delete_media([user.avatar, user.banner])
    user.avatar = user.banner = None


def _delete_media(faces: Iterable[Mapping[str, Any] | None]) -> None:
    ids = [int(facts["id"]) for facts in faces if facts]
    if ids:
        actions.delete_media(list(MediaFile.objects.select_for_update().filter(pk__in=ids)))
