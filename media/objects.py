"""Media as pages and clients see them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from django.conf import settings

from media.files import size_name
from media.models import MediaFile, MediaKind, MediaState
from media.reasons import failure_of


class MediumFacts(msgspec.Struct, omit_defaults=True):
    """Facts of a medium in an item's or user's row."""

    id: str
    kind: str
    name: str
    ext: str
    small_ext: str = ""
    width: int = 0
    height: int = 0
    small_width: int = 0
    small_height: int = 0
    widths: list[int] = []
    is_moving: bool = False
    size: int = 0
    duration: float | None = None
    blurhash: str = ""
    x: float = 0.0
    y: float = 0.0
    description: str = ""
    captions: str = ""


class Dimensions(msgspec.Struct):
    """A size in pixels. `size` is "WIDTHxHEIGHT"."""

    width: int
    height: int
    size: str
    aspect: float


class Focus(msgspec.Struct):
    """The point that stays visible in a crop. From -1 to 1, x to the right, y upwards."""

    x: float
    y: float


_NUMBER = r"\s*([+-]?(?:[0-9]{1,20}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:e[+-]?[0-9]{1,3})?)\s*"
_POINT = re.compile(f"{_NUMBER},{_NUMBER}", re.ASCII | re.IGNORECASE)


def parse_focus(text: str) -> tuple[float, float] | None:
    """Parse "x,y", each from -1 to 1."""
    if not (match := _POINT.fullmatch(text)):
        return None
    x, y = map(float, match.groups())
    return (x, y) if -1 <= x <= 1 and -1 <= y <= 1 else None


class Meta(msgspec.Struct, omit_defaults=True):
    """Sizes, focus, and the seconds of a video."""

    original: Dimensions
    small: Dimensions
    focus: Focus
    duration: float | None = None


class MediaObject(msgspec.Struct):
    """A picture or video, with Mastodon's field names. A video's `preview_url` is its poster, a picture, or its own
    address if it has none. `captions_url` is a WebVTT file. `widths`: of further pictures, at the address `url` with
    `.<width>.webp` in place of its extension. `is_moving`: `url` is an animation, and the other files show its first
    frame.
    """

    id: str
    type: str
    url: str
    preview_url: str
    description: str
    blurhash: str
    meta: Meta
    captions_url: str | None = None
    widths: list[int] = []
    is_moving: bool = False

    @property
    def is_video(self) -> bool:
        """Whether it is a video."""
        return self.type == MediaKind.VIDEO

    @property
    def has_still(self) -> bool:
        """Whether there is a picture of it."""
        return not self.is_video or self.preview_url != self.url

    @property
    def poster(self) -> str:
        """The address of a video's poster, or ""."""
        return self.preview_url if self.has_still else ""

    @property
    def name(self) -> str:
        """The name of its files in the store."""
        return self.url.removeprefix(settings.MEDIA_ADDRESS).partition(".")[0]

    def at_least(self, width: float) -> str:
        """The address of the narrowest still that has this width, else of the widest."""
        base = f"{settings.MEDIA_ADDRESS}{self.name}"
        stills = [(each, size_name(base, each)) for each in self.widths]
        if self.is_moving or self.is_video or not stills:
            stills.append((self.meta.small.width, self.preview_url))
        if not self.is_moving and not self.is_video:
            stills.append((self.meta.original.width, self.url))
        stills.sort()
        return next((address for each, address in stills if each >= width), stills[-1][1])


class OwnMedium(MediaObject):
    """One of the caller's media. `state`: processing, ready or failed. A video is processed after its upload, and `url`
    is empty until it is ready. `progress`: percent. `failure`: why it failed, else null.
    """

    state: str = MediaState.READY.value
    progress: int = 100
    failure: str | None = None


OWN = "/media/"
"""Where captions are served: on the site itself, because browsers read them from no other site."""

_entries = msgspec.json.Decoder(list[MediumFacts])
_entry = msgspec.json.Decoder(MediumFacts)


def address(name: str, ext: str) -> str:
    """The public address of a file, or "" if there is none."""
    return f"{settings.MEDIA_ADDRESS}{name}.{ext}" if ext else ""


def facts_of_row(row: MediaFile) -> MediumFacts:
    """Facts to store with what uses the medium."""
    return MediumFacts(
        id=str(row.id),
        kind=str(row.kind),
        name=row.name,
        ext=row.ext,
        small_ext=row.small_ext,
        width=row.width,
        height=row.height,
        small_width=row.small_width,
        small_height=row.small_height,
        widths=row.widths,
        is_moving=row.is_moving,
        size=row.size,
        duration=row.duration,
        blurhash=row.blurhash,
        x=row.focus_x,
        y=row.focus_y,
        description=row.description,
        captions=row.captions,
    )


def facts_for_json(rows: Iterable[MediaFile]) -> list[dict[str, Any]]:
    """Facts of media for a JSON column."""
    return [msgspec.to_builtins(facts_of_row(row)) for row in rows]


def address_from_facts(facts: Mapping[str, Any]) -> str:
    """Public address, from facts."""
    return address(facts["name"], facts["ext"])


def media_objects(facts: str | list[dict[str, Any]]) -> list[MediaObject]:
    """Media of an item's column, as text or decoded."""
    if isinstance(facts, str):
        return [] if facts == "[]" else [object_from_facts(entry) for entry in _entries.decode(facts)]
    return [object_from_facts(entry) for entry in msgspec.convert(facts, list[MediumFacts])]


def decode_medium(facts: str | Mapping[str, Any] | None) -> MediaObject | None:
    """A medium from facts, as text or decoded."""
    if not facts:
        return None
    return object_from_facts(_entry.decode(facts) if isinstance(facts, str) else msgspec.convert(facts, MediumFacts))


def object_from_row(row: MediaFile) -> MediaObject:
    """A medium from its row."""
    return object_from_facts(facts_of_row(row))


def own_medium(row: MediaFile) -> OwnMedium:
    """A medium for its owner."""
    medium = object_from_row(row)
    fields = {name: getattr(medium, name) for name in MediaObject.__struct_fields__}
    return OwnMedium(**fields, state=row.state, progress=row.progress, failure=failure_of(row) or None)


def object_from_facts(entry: MediumFacts) -> MediaObject:
    """A medium from its facts."""
    url = address(entry.name, entry.ext)
    has_small = bool(entry.small_ext)
    small = (entry.small_width, entry.small_height) if has_small else (entry.width, entry.height)
    return MediaObject(
        id=entry.id,
        type=entry.kind,
        url=url,
        preview_url=address(f"{entry.name}.small", entry.small_ext) if has_small else url,
        description=entry.description,
        blurhash=entry.blurhash,
        meta=Meta(
            original=_dimensions(entry.width, entry.height),
            small=_dimensions(*small),
            focus=Focus(entry.x, entry.y),
            duration=entry.duration,
        ),
        captions_url=f"{OWN}{entry.name}.{entry.captions}" if entry.captions else None,
        widths=entry.widths,
        is_moving=entry.is_moving,
    )


def aspect(width: int, height: int) -> float:
    """Width by height, rounded."""
    return round(width / height, 4) if height else 1.0


def _dimensions(width: int, height: int) -> Dimensions:
    return Dimensions(width, height, f"{width}x{height}", aspect(width, height))
