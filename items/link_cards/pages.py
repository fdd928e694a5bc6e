"""Reading a page elsewhere: its title, words, site and pictures."""

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urljoin

from items.link_cards import encodings
from items.link_cards.encodings import UNREADABLE
from items.link_cards.heads import Head, NoMetadataError, scan
from items.links import is_link
from items.models import URL_LENGTH
from web import outbound
from web.letters import INVISIBLE, SHAPING, beginning, compiled, stream_safe

HTML = ("text/html", encodings.XML)
# The decoder looks at the bytes. Stores of files name no type, or these.
PICTURES = (
    *("image/jpeg", "image/png", "image/webp", "image/avif", "image/gif", "image/jpg", "image/pjpeg", "image/x-png"),
    *("application/octet-stream", "binary/octet-stream", ""),
)
PICTURE_NAMES = (
    *("og:image:secure_url", "og:image", "og:image:url"),
    *("twitter:image", "twitter:image:src", "image_src"),
)
MOST_PICTURES = 2
"""Pictures of a page that are tried."""
CONTROLS = "".join(map(chr, range(33)))
"""What browsers cut off an address."""
REFRESH_SECONDS = 10
"""Pages that send their readers on later than this count by themselves."""
TITLE_LENGTH = 200
DESCRIPTION_LENGTH = 400
SITE_LENGTH = 100
LOOKED_AT = 5
"""Characters that are looked at for each that is kept: most of them may be white space."""
# Of what draws nothing, only what shapes emoji and letters stays: no control turns the words around a title round.
UNSEEN = compiled(rf"(?:[{INVISIBLE}--{SHAPING}])+")
_REFRESH = re.compile(
    r"\s*+(\d{1,9})[\d.]*+(?:\s*+[;,]|\s)\s*+(?:url\s*+=\s*+)?(?:\"([^\"]*+)|'([^']*+)|(.++))",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)


class RemotePage(NamedTuple):
    """A page elsewhere, by its own words. The first of its pictures that can be shown counts."""

    title: str
    description: str
    site: str
    pictures: tuple[str, ...]


def read(url: str, *, member: int) -> tuple[RemotePage, str]:
    """Read a page for a member, and once the page where it sends its readers. Returns the facts and the address where
    redirects ended. Raises OutboundError.
    """
    head, end = _read_head(url, member)
    onward = refresh_of(head, end)
    if onward and onward != end:
        try:
            there, end_there = _read_head(onward, member)
            return page_of(there, end_there), end_there
        except outbound.OverBudgetError:
            raise
        except outbound.OutboundError:
            pass  # the first page counts
    return page_of(head, end), end


def _read_head(url: str, member: int) -> tuple[Head, str]:
    answer = outbound.get(url, types=HTML, member=member)
    if answer.status != 200:
        raise outbound.OutboundError(f"status {answer.status}")
    return head_of(answer.body, answer.headers.get("Content-Type", "")), answer.url


def read_picture(url: str, *, member: int) -> bytes:
    """The file of a picture. Raises outbound.OutboundError."""
    answer = outbound.get(url, types=PICTURES, member=member)
    if answer.status != 200 or not answer.is_whole:
        raise outbound.OutboundError("no whole picture")
    return answer.body


def head_of(body: bytes, content_type: str) -> Head:
    """What a page says of itself. Raises NoMetadataError for one that was made to be slow."""
    is_xml = content_type.lower().startswith(encodings.XML)
    codec = encodings.declared_encoding(body, content_type)
    head = scan(encodings.decoded(body, codec or encodings.UTF8), is_xml=is_xml)
    if codec is None and (codec := next(filter(None, map(encodings.encoding_of_label, head.labels)), None)):
        head = scan(encodings.decoded(body, codec), is_xml=is_xml)
    if UNREADABLE in head.words or "\x1b" in head.words:  # ISO-2022-JP begins with an escape
        guess = encodings.guess_encoding(body)
        if guess != (codec or encodings.UTF8):
            other = scan(encodings.decoded(body, guess), is_xml=is_xml)
            head = head if UNREADABLE in other.words else other
    return head


def page_of(head: Head, url: str) -> RemotePage:
    """The facts of a card. Raises NoMetadataError without a title."""
    base = _absolute_address(head.base, url) or url
    pictures = dict.fromkeys(
        _absolute_address(value, base) for name in PICTURE_NAMES for value in head.said.get(name, ())
    )
    found = RemotePage(
        title=_first_value(head, ("og:title", "twitter:title"), TITLE_LENGTH) or single_line(head.title, TITLE_LENGTH),
        description=_first_value(head, ("og:description", "twitter:description", "description"), DESCRIPTION_LENGTH),
        site=_first_value(head, ("og:site_name", "application-name"), SITE_LENGTH),
        pictures=tuple(filter(None, pictures))[:MOST_PICTURES],
    )
    if not found.title:
        raise NoMetadataError("no title")
    return found


def refresh_of(head: Head, url: str) -> str:
    """The address where a page sends its readers soon, or ""."""
    found = _REFRESH.match(head.refresh)
    if found is None or int(found[1]) > REFRESH_SECONDS:
        return ""
    return _absolute_address(found[found.lastindex or 0], _absolute_address(head.base, url) or url).partition("#")[0]


def _first_value(head: Head, names: Iterable[str], most: int) -> str:
    return next(filter(None, (single_line(value, most) for name in names for value in head.said.get(name, ()))), "")


def _absolute_address(written: str, base: str) -> str:
    """The web address that a page writes, or ""."""
    written = re.sub(r"[\t\n\r]", "", written).strip(CONTROLS).replace(" ", "%20")
    if not written or len(written) > URL_LENGTH:
        return ""
    try:
        address = urljoin(base, written)
    except ValueError:
        return ""
    return address if is_link(address, is_secure=False) else ""


def single_line(text: str, most: int) -> str:
    """Words of a page as one line of at most `most` letters."""
    text = stream_safe(UNSEEN.sub(" ", text[: most * LOOKED_AT].replace(UNREADABLE, ""))).strip()
    return text if len(text) <= most else f"{beginning(text, most - 1)}…"
