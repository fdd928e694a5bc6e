"""The site's logo: uploaded, or the default icon."""

from collections.abc import Mapping
from typing import IO, Any

import msgspec
from django.db import transaction
from django.templatetags.static import static

from accounts.about import actions as about
from accounts.about.models import SiteSettings
from media import actions
from media.actions import Shape
from media.models import MediaFile, Use
from media.objects import address_of, entry_of

OWNER = 0
"""Owned by the site, so that it stays when the admin who set it leaves. Its use is `avatar`."""
SHAPE = Shape(longest=400, small=160, is_square=True, is_still=True)


def logo_url(facts: Mapping[str, Any] | None) -> str:
    """The logo's address."""
    return address_of(facts) if facts else static("feedsite/icon.svg")


def set_logo(*, file: IO[bytes] | None) -> None:
    """Replace the logo. None: the default icon. Raises what media.actions.upload does."""
    medium = actions.upload(owner_id=OWNER, file=file, shape=SHAPE) if file is not None else None
    with transaction.atomic():
        row = SiteSettings.objects.select_for_update().filter(pk=1).first()
        if row is not None and row.logo:
            actions.forget(list(MediaFile.objects.select_for_update().filter(pk=int(row.logo["id"]))))
        if medium is not None:
            MediaFile.objects.filter(pk=medium.pk).update(use=Use.AVATAR)
        about.change(logo=msgspec.to_builtins(entry_of(medium)) if medium else None)
