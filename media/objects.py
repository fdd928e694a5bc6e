"""A medium as pages and clients are shown it, from the facts that its item or its owner keeps.

An item keeps the facts of its media in its own row (`Item.media`), so no page asks one statement more for them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from django.conf import settings

from media.models import Kind, MediaFile


class Entry(msgspec.Struct, omit_defaults=True):
    """The facts of a medium, as an item or a user keeps them."""

    id: str
    kind: str
    name: str
    ext: str
    small_ext: str = ""
    width: int = 0
    height: int = 0
    small_width: int = 0
    small_height: int = 0
    size: int = 0
    duration: float | None = None
    blurhash: str = ""
    colour: str = "#808080"
    x: float = 0.0
    y: float = 0.0
    description: str = ""


class Shown(msgspec.Struct, frozen=True):
    """A medium as a page shows it. `preview_url` of a video is its own address: the browser draws the poster."""

    id: str
    type: str
    url: str
    preview_url: str
    description: str
    blurhash: str
    colour: str
    width: int
    height: int
    small_width: int
    small_height: int
    size: int
    focus_x: float
    focus_y: float
    duration: float | None

    @property
    def aspect(self) -> float:
        """Width by height."""
        return aspect(self.width, self.height)

    @property
    def is_video(self) -> bool:
        """Whether it is a video."""
        return self.type == Kind.VIDEO


class Dimensions(msgspec.Struct):
    """The size of a file in pixels: `size` is WIDTHxHEIGHT."""

    width: int
    height: int
    size: str
    aspect: float


class Focus(msgspec.Struct):
    """The point that stays in sight where a picture is cut: from -1 to 1, x to the right and y upwards."""

    x: float
    y: float


class Meta(msgspec.Struct, omit_defaults=True):
    """The sizes of a medium, its focus, and the seconds of a video."""

    original: Dimensions
    small: Dimensions
    focus: Focus
    duration: float | None = None


class MediaObject(msgspec.Struct):
    """A picture or video, by the names that Mastodon's clients know."""

    id: str
    type: str
    url: str
    preview_url: str
    description: str
    blurhash: str
    meta: Meta


_entries = msgspec.json.Decoder(list[Entry])
_entry = msgspec.json.Decoder(Entry | None)


def address(name: str, ext: str) -> str:
    """The public address of a file."""
    return f"{settings.MEDIA_ADDRESS}{name}.{ext}"


def entry_of(row: MediaFile) -> Entry:
    """The facts of a medium, to be kept by what uses it."""
    return Entry(
        id=str(row.id),
        kind=str(row.kind),
        name=row.name,
        ext=row.ext,
        small_ext=row.small_ext,
        width=row.width,
        height=row.height,
        small_width=row.small_width,
        small_height=row.small_height,
        size=row.size,
        duration=row.duration,
        blurhash=row.blurhash,
        colour=row.colour,
        x=row.focus_x,
        y=row.focus_y,
        description=row.description,
    )


def kept(rows: Iterable[MediaFile]) -> list[dict[str, Any]]:
    """The facts of media as a column of JSON takes them."""
    return [msgspec.to_builtins(entry_of(row)) for row in rows]


def shown(entry: Entry | Mapping[str, Any]) -> Shown:
    """A medium from its facts."""
    if not isinstance(entry, Entry):
        entry = msgspec.convert(entry, Entry)
    url = address(entry.name, entry.ext)
    has_small = bool(entry.small_ext)
    return Shown(
        id=entry.id,
        type=entry.kind,
        url=url,
        preview_url=address(f"{entry.name}.small", entry.small_ext) if has_small else url,
        description=entry.description,
        blurhash=entry.blurhash,
        colour=entry.colour,
        width=entry.width,
        height=entry.height,
        small_width=entry.small_width if has_small else entry.width,
        small_height=entry.small_height if has_small else entry.height,
        size=entry.size,
        focus_x=entry.x,
        focus_y=entry.y,
        duration=entry.duration,
    )


def shown_all(text: str) -> list[Shown]:
    """The media of an item from the text of its column."""
    return [] if text == "[]" else [shown(entry) for entry in _entries.decode(text)]


def shown_one(text: str | None) -> Shown | None:
    """A user's avatar or banner from the text of its column."""
    entry = _entry.decode(text) if text else None
    return shown(entry) if entry else None


def media_object(medium: Shown | MediaFile) -> MediaObject:
    """A medium as the API shows it."""
    one = shown(entry_of(medium)) if isinstance(medium, MediaFile) else medium
    return MediaObject(
        id=one.id,
        type=one.type,
        url=one.url,
        preview_url=one.preview_url,
        description=one.description,
        blurhash=one.blurhash,
        meta=Meta(
            original=_dimensions(one.width, one.height),
            small=_dimensions(one.small_width, one.small_height),
            focus=Focus(one.focus_x, one.focus_y),
            duration=one.duration,
        ),
    )


def aspect(width: int, height: int) -> float:
    """Width by height, rounded as it is sent."""
    return round(width / height, 4) if height else 1.0


def _dimensions(width: int, height: int) -> Dimensions:
    return Dimensions(width, height, f"{width}x{height}", aspect(width, height))
