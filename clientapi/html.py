"""Texts as HTML for Mastodon's clients.

What people wrote is escaped. The only tags are p, br, a and span, with the attributes spelled here.

See docs/decisions.md: Own code in place of a library.
"""

import re
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple, Protocol
from urllib.parse import quote

from django.conf import settings
from django.utils.html import escape

from items.text import SpanKind, spans

LINKS = 50
"""Maximum links per text, as on pages."""
KEPT, KEPT_LENGTH = 4_096, 1_000
"""Size of the cache of rendered texts, and maximum characters of a cached text."""
PARAGRAPHS = re.compile(r"\n{2,}")


class TextSource(Protocol):
    """An item, or an earlier version of one."""

    @property
    def title(self) -> str:
        """The title, or empty."""

    @property
    def url(self) -> str:
        """The https link in the content, or empty."""


class MentionedName(NamedTuple):
    """A mentioned name in lower case, and the HTML of the mention with and without a link."""

    name: str
    linked: str
    plain: str


class Rendered(NamedTuple):
    """A text as HTML in parts. Mentions are open: each reader gets links only to names that they may know of."""

    parts: tuple[str | MentionedName, ...]
    names: tuple[str, ...]
    """Mentioned names in lower case, each once."""
    tags: tuple[str, ...]
    """Hashtags in canonical form."""

    def html(self, known: Collection[str]) -> str:
        """The HTML for a reader who may know of these names."""
        if not self.names:
            return "".join(self.parts)  # type: ignore[arg-type]  # no part is a name
        return "".join(
            part if isinstance(part, str) else part.linked if part.name in known else part.plain for part in self.parts
        )


def rendered(text: str) -> Rendered:
    """A text as HTML. Short texts are cached."""
    return _kept(text) if len(text) <= KEPT_LENGTH else _rendered(text)


def _rendered(text: str) -> Rendered:
    parts: list[str | MentionedName] = []
    names: dict[str, None] = {}
    tags: dict[str, None] = {}
    links = 0
    for kind, written, value in spans(text.replace("\r\n", "\n").replace("\r", "\n").strip()):
        if kind == SpanKind.TEXT or links == LINKS:
            parts.append(_with_line_breaks(written))
            continue
        links += 1
        if kind == SpanKind.MENTION:
            names[value.lower()] = None
            parts.append(_mention(written, value))
        elif kind == SpanKind.HASHTAG:
            tags[value] = None
            parts.append(_hashtag(written, value))
        else:
            parts.append(link(value, written))
    return Rendered(tuple(_joined(parts)), tuple(names), tuple(tags))


_kept = lru_cache(KEPT)(_rendered)


def _joined(parts: list[str | MentionedName]) -> list[str | MentionedName]:
    if not parts:
        return []
    joined: list[str | MentionedName] = ["<p>"]
    for part in [*parts, "</p>"]:
        if isinstance(part, str) and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def _with_line_breaks(text: str) -> str:
    return PARAGRAPHS.sub("</p><p>", escape(text)).replace("\n", "<br>")


def _mention(written: str, name: str) -> MentionedName:
    plain = escape(written)
    address = escape(profile_address(name))
    linked = f'<span class="h-card"><a href="{address}" class="u-url mention">@<span>{escape(name)}</span></a></span>'
    return MentionedName(name.lower(), linked, plain)


def _hashtag(written: str, tag: str) -> str:
    shown = escape(written[1:])
    return f'<a href="{escape(tag_address(tag))}" class="mention hashtag" rel="tag">#<span>{shown}</span></a>'


def link(address: str, shown: str) -> str:
    """HTML of a link to a checked address (items.links)."""
    return (
        f'<a href="{escape(address)}" target="_blank" rel="nofollow noopener noreferrer ugc">'
        f"<span>{escape(shown)}</span></a>"
    )


def profile_address(name: str) -> str:
    return f"{settings.SITE_URL}/@{name}"


@lru_cache(KEPT)
def tag_address(tag: str) -> str:
    """The address of a hashtag's page."""
    return f"{settings.SITE_URL}/tags/{quote(tag)}"


def item_address(item_id: str) -> str:
    """The address of an item's page."""
    return f"{settings.SITE_URL}/items/{item_id}"


def content(said: TextSource, text: Rendered, known: Collection[str]) -> str:
    """The HTML of the whole content: title, text and link."""
    found = text.html(known)
    if said.title:
        found = f"<p>{escape(said.title)}</p>{found}"
    url = said.url
    return f"{found}<p>{link(url, url)}</p>" if url else found


def quote_paragraph(item_id: str) -> str:
    """A paragraph that names the quoted item. Apps that know quotes hide it."""
    address = item_address(item_id)
    return f'<p class="quote-inline">RE: {link(address, address)}</p>'


def html_without_mentions(text: str) -> str:
    """A text as HTML in which mentions are no links."""
    return rendered(text).html(())


def inline_html(text: str) -> str:
    """The HTML of `html_without_mentions`, without the paragraph's tags."""
    return html_without_mentions(text).removeprefix("<p>").removesuffix("</p>")
