"""Changes a whole profile at once, pictures included."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import IO

from django.db import DatabaseError, transaction

from accounts import actions, faces
from accounts.models import User
from accounts.profile_fields import Pair
from media import actions as media
from media.actions import MediaError
from media.decoder import DecoderBusyError
from media.files import StoreError
from media.models import MediaFile, Use


class FacesError(Exception):
    """Refused pictures. `reasons`: the error of each."""

    def __init__(self, reasons: Mapping[Use, Exception]) -> None:
        super().__init__(", ".join(reasons))
        self.reasons = reasons


def update_profile(
    *,
    user: User,
    display_name: str,
    bio: str,
    fields: Iterable[Pair] | None = None,
    files: Mapping[Use, IO[bytes]],
    removed: Collection[Use],
    is_locked: bool | None = None,
) -> None:
    """Change the profile, all or nothing. Raises FacesError and ValidationError."""
    new: dict[Use, MediaFile | None] = dict.fromkeys(removed)
    taken: list[MediaFile] = []
    reasons: dict[Use, Exception] = {}
    try:
        for use, file in files.items():
            try:
                taken.append(faces.upload_face(user=user, use=use, file=file))
            except (MediaError, DecoderBusyError, StoreError) as error:
                reasons[use] = error
            else:
                new[use] = taken[-1]
        if reasons:
            raise FacesError(reasons)
        with transaction.atomic():
            actions.edit_profile(user=user, display_name=display_name, bio=bio, fields=fields, is_locked=is_locked)
            faces.replace_faces(user=user, new=new)
    except BaseException:
        with suppress(DatabaseError):  # otherwise swept after a day
            for row in taken:
                media.remove_unused(owner_id=row.owner_id, media_id=row.pk)
        raise
