"""Pictures as HTML."""

from collections.abc import Sequence

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from media.objects import MediaObject
from media.sources import sources
from web.icons import icon

STEPS = 10
"""The classes of site.css: `.fx-0` to `.fx-10` from left to right, `.fy-0` to `.fy-10` from top to bottom."""
FEW = 320
"""A single picture narrower than this, in pixels, is not enlarged to the column."""
BASE_83 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~"
"""The digits of a blurhash."""


def focus(picture: MediaObject) -> str:
    """CSS classes that keep the focus visible. The CSP forbids style attributes."""
    x, y = (min(max(at, -1.0), 1.0) for at in (picture.meta.focus.x, -picture.meta.focus.y))
    return f"fx-{round((x + 1) / 2 * STEPS)} fy-{round((y + 1) / 2 * STEPS)}"


def figures(pictures: Sequence[MediaObject], *, whole: bool = False, is_first: bool = False) -> SafeString:
    """The pictures or video of an item, as HTML. `is_first`: not lazy-loaded. A template would cost half a millisecond
    each.
    """
    loading = "eager" if is_first else "lazy"
    shown = [_figure(one, number, len(pictures), loading, whole=whole) for number, one in enumerate(pictures, 1)]
    return mark_safe("".join(shown))  # noqa: S308 (made of escaped parts)


def _figure(picture: MediaObject, number: int, count: int, loading: str, *, whole: bool) -> str:
    words, original = escape(picture.description), picture.meta.original
    size = f'width="{original.width}" height="{original.height}"'
    if picture.is_video:
        medium = _video(picture, words, size)
    else:
        alt = words or escape(_undescribed(number, count))
        medium = _picture(picture, alt, size, loading, _place(number, count, whole=whole))
    few = " few" if count == 1 and not picture.is_video and original.width < FEW else ""
    return f'<figure class="picture{few}">{medium}{_alt(words) if words else ""}</figure>'


def _video(video: MediaObject, words: str, size: str) -> str:
    """A video, of which nothing is loaded before it plays, and the way to the viewer."""
    url, label = escape(video.url), f' aria-label="{words}"' if words else ""
    poster = f' poster="{escape(video.poster)}"' if video.poster else ""
    larger = escape(_("View larger"))
    return (
        f'<video controls playsinline preload="none" src="{url}"{poster} {size}{label}>{_captions(video)}</video>'
        f'<a class="enlarge" href="{url}" data-light data-film data-words="{words}" title="{larger}">'
        f'{icon("search")}<span class="hidden">{larger}</span></a>'
    )


def _captions(video: MediaObject) -> str:
    if not video.captions_url:
        return ""
    return f'<track kind="captions" src="{escape(video.captions_url)}" label="{escape(_("Captions"))}" default>'


def _place(number: int, count: int, *, whole: bool) -> str:
    if count == 1:
        return "whole" if whole else "one"
    return "half" if count == 2 or (count == 3 and number == 1) else "quarter"


def _picture(picture: MediaObject, alt: str, size: str, loading: str, place: str) -> str:
    url, words, source = escape(picture.url), escape(picture.description), sources(picture, place)
    files = f' data-widths="{" ".join(map(str, picture.widths))}"' if picture.widths else ""
    if picture.is_moving:
        files += " data-moves"
    quiet = ""
    if picture.is_moving and place == "whole":
        source = SafeString(f'src="{url}"')
        still = escape(picture.at_least(picture.meta.original.width))
        quiet = f'<source media="(prefers-reduced-motion: reduce)" srcset="{still}">'
    sign = f'<span class="moves{" by-itself" if quiet else ""}">{icon("play")}</span>' if picture.is_moving else ""
    image = f'<img class="{focus(picture)}" {source} {size} alt="{alt}" loading="{loading}" decoding="async">'
    return (
        f'<a href="{url}" data-light data-{size.replace(" h", " data-h")}{files} data-words="{words}">{ground(picture)}'
        f"{f'<picture>{quiet}{image}</picture>' if quiet else image}{sign}</a>"
    )


def _alt(words: str) -> str:
    label = escape(_("Description"))
    return (
        f'<details class="alt"><summary title="{label}">ALT<span class="hidden">: {label}</span></summary>'
        f'<p tabindex="0">{words}</p></details>'
    )


def _undescribed(number: int, count: int) -> str:
    if count == 1:
        return _("Picture without a description")
    return _("Picture %(number)s of %(count)s, without a description") % {"number": number, "count": count}


def ground(picture: MediaObject) -> SafeString:
    """The background of a loading picture: an SVG, because the CSP forbids style attributes."""
    colour = average_colour(picture.blurhash)
    return mark_safe(  # noqa: S308 (made of escaped parts)
        f'<svg class="ground" aria-hidden="true" data-hash="{escape(picture.blurhash)}" viewBox="0 0 1 1" '
        f'preserveAspectRatio="none"><rect width="1" height="1" fill="{colour}"/></svg>'
    )


def average_colour(blurhash: str) -> str:
    """A picture's average colour as #rrggbb. Black without a blurhash.

    Source: https://github.com/woltapp/blurhash/blob/master/Algorithm.md (the DC value).
    """
    value = 0
    for digit in blurhash[2:6]:
        value = value * 83 + BASE_83.index(digit)
    return f"#{value:06x}"
