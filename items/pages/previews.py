"""Link previews: OpenGraph and Twitter cards, for pages that strangers may see. A warning hides the rest. Sensitive
pictures are not shown.
"""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.utils.translation import gettext as _

from accounts.models import User
from items.bodies import ItemBody
from items.pages.reading import excerpt

DESCRIPTION_LETTERS = 200
TITLE_LETTERS = 70


@dataclass(frozen=True, slots=True)
class PreviewPicture:
    """The picture of a preview. Sizes are in pixels, 0 if unknown."""

    address: str
    description: str
    width: int = 0
    height: int = 0


@dataclass(frozen=True, slots=True)
class Preview:
    """A page as other sites show its link. `kind` is OpenGraph's."""

    kind: str
    title: str
    description: str
    address: str
    """The canonical path."""
    picture: PreviewPicture | None = None
    is_wide: bool = False
    """Whether the picture is the content, not an avatar."""
    feed: str = ""
    """The path of an Atom feed."""
    is_indexable: bool = True


def item_preview(item: ItemBody, address: str) -> Preview:
    """The preview of an item that strangers may see."""
    shown = item.shown
    picture = None
    if shown.media and not shown.is_veiled and shown.media[0].has_still:
        first = shown.media[0]
        address, size = (first.poster, first.meta.small) if first.is_video else (first.url, first.meta.original)
        picture = PreviewPicture(address, first.description, size.width, size.height)
    face = None if picture else face_of(shown.sender.avatar_url, shown.sender.name)
    return Preview(
        kind="article",
        title=excerpt(f"{shown.sender.name} (@{shown.sender.username})", TITLE_LETTERS),
        description=excerpt(shown.words, DESCRIPTION_LETTERS),
        address=address,
        picture=picture or face,
        is_wide=picture is not None,
        is_indexable=User.objects.filter(pk=shown.sender.id, is_indexable=True).exists(),
    )


def person_preview(person: User, address: str, feed: str, reader: User | AnonymousUser) -> Preview | None:
    """The preview of a profile, for strangers only."""
    if isinstance(reader, User):
        return None
    return Preview(
        kind="profile",
        title=excerpt(f"{person.name} (@{person.username})", TITLE_LETTERS),
        description=excerpt(person.bio, DESCRIPTION_LETTERS),
        address=address,
        picture=face_of(person.avatar_url, person.name),
        feed=feed,
        is_indexable=person.is_indexable,
    )


def face_of(avatar_url: str, name: str) -> PreviewPicture:
    """An avatar as a preview picture."""
    return PreviewPicture(avatar_url, _("Profile picture of %(name)s") % {"name": name})
