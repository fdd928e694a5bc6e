"""The pictures of link cards: one for the same bytes, removed with the last card."""

import hashlib
from collections.abc import Callable

from django.core.files.base import ContentFile
from django.db import transaction

from media.actions import PictureLimits, check_blocked, delete_media, store_file
from media.models import MediaFile, Use

LINKED = PictureLimits(longest=1280, small=320, widths=(160, 320, 640), is_still=True)
NOBODY = 0
"""The owner of what no member sent."""


def store_picture(data: bytes) -> MediaFile:
    """Keep a picture, or find it as kept before. Raises what `store_file` does."""
    known = MediaFile.objects.filter(sha256=hashlib.sha256(data).hexdigest(), use=Use.LINK).first()
    if known is None:
        return store_file(owner_id=NOBODY, file=ContentFile(data), shape=LINKED)
    with transaction.atomic():
        check_blocked(known, is_face=True)
    return known


def mark_used(picture: MediaFile) -> bool:
    """Note that a card shows a picture. False if gone."""
    return bool(MediaFile.objects.filter(pk=picture.pk, use__in=[Use.NONE, Use.LINK]).update(use=Use.LINK))


def remove_unless_used(picture_id: int, is_used: Callable[[], bool]) -> None:
    """Remove a picture unless a card shows it. Locked, so that no other begins to."""
    row = MediaFile.objects.select_for_update().filter(pk=picture_id, use=Use.LINK).first()
    if row is not None and not is_used():
        delete_media([row])
