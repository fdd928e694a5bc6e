"""The site's logo, also as PNG icons."""

import io
from collections.abc import Mapping
from functools import lru_cache
from typing import IO, Any, NamedTuple

import msgspec
from django.db import transaction
from django.templatetags.static import static
from django.urls import reverse

from accounts.about import actions as about
from accounts.about.models import SiteSettings
from media import actions
from media.actions import PictureLimits
from media.files import FACE_WIDTHS
from media.models import MediaFile, Use
from media.objects import facts_of_row
from media.store import store

OWNER = 0
"""Owner id of the logo: the site, so that the file stays when the admin who set it leaves. Its use is `avatar`."""
SHAPE = PictureLimits(longest=512, small=160, widths=FACE_WIDTHS, is_square=True, is_still=True)


class Icon(NamedTuple):
    """A PNG icon. `part`: how much of its width the logo takes."""

    size: int
    part: float = 1.0
    is_opaque: bool = False


ICONS = {
    "icon-192": Icon(192),
    "icon-512": Icon(512),
    "maskable-512": Icon(512, 0.7, is_opaque=True),
    "apple-touch-icon": Icon(180, is_opaque=True),
}
"""The icons drawn from an uploaded logo, by name. The default logo's are static files of the same names."""


def icon_url(facts: Mapping[str, Any] | None, name: str) -> str:
    """The address of one of `ICONS`."""
    return reverse("icon", args=[facts["id"], name]) if facts else static(f"feedsite/{name}.png")


@lru_cache(2 * len(ICONS))
def render_icon(file_name: str, name: str) -> bytes:
    """An uploaded logo's icon as PNG. Raises FileNotFoundError and StoreError."""
    from PIL import Image  # pages do without

    icon = ICONS[name]
    side = round(icon.size * icon.part)
    with store().open(file_name) as file, Image.open(file) as opened:
        logo = opened.convert("RGBA").resize((side, side), Image.Resampling.LANCZOS)
    ground = Image.new("RGBA", (icon.size, icon.size), (255, 255, 255, 255 if icon.is_opaque else 0))
    place = (icon.size - side) // 2
    ground.alpha_composite(logo, (place, place))
    drawn = io.BytesIO()
    (ground.convert("RGB") if icon.is_opaque else ground).save(drawn, "PNG", optimize=True)
    return drawn.getvalue()


@transaction.atomic
def rename_logo(medium: MediaFile) -> None:
    """Give the logo a new name if it is this picture."""
    site = SiteSettings.objects.select_for_update().filter(pk=1, logo__id=str(medium.pk)).first()
    if site is not None:
        row = MediaFile.objects.select_for_update().get(pk=medium.pk)
        actions.rename([row])
        about.change_settings(logo=msgspec.to_builtins(facts_of_row(row)))


def set_logo(*, file: IO[bytes] | None) -> None:
    """Replace the logo. None: the default."""
    medium = actions.upload(owner_id=OWNER, file=file, shape=SHAPE) if file is not None else None
    with transaction.atomic():
        row = SiteSettings.objects.select_for_update().filter(pk=1).first()
        if row is not None and row.logo:
            actions.delete_media(list(MediaFile.objects.select_for_update().filter(pk=int(row.logo["id"]))))
        if medium is not None:
            MediaFile.objects.filter(pk=medium.pk).update(use=Use.AVATAR)
        about.change_settings(logo=msgspec.to_builtins(facts_of_row(medium)) if medium else None)
