"""Reading a page elsewhere: its title, words, site and picture."""

import codecs
import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser

from items.links import is_link
from items.models import URL_LENGTH
from web import outbound
from web.letters import INVISIBLE, SHAPING, beginning, compiled, stream_safe

HTML = ("text/html", "application/xhtml+xml")
PICTURES = ("image/jpeg", "image/png", "image/webp", "image/avif", "image/gif")
TITLE_LENGTH = 200
DESCRIPTION_LENGTH = 400
SITE_LENGTH = 100
LOOKED_AT = 5
"""Characters that are looked at for each that is kept: most of them may be white space."""
# Elements that name a page, and those whose markup is text. Without all others nothing is nested: parsers take time in
# proportion to the square of the depth.
_NAMED = r"(?!(?:title|meta|head|script|style|textarea|iframe|xmp|noembed|noframes)[ \t\n\f\r/>])[a-z]"
NESTING = re.compile(rf"</?{_NAMED}[^<>]*>", re.IGNORECASE | re.ASCII)
LEFT, MOST_LEFT = re.compile(f"<{_NAMED}", re.IGNORECASE | re.ASCII), 5_000
"""Elements that may still be nested after `NESTING` is removed, as in `<a<b>>`, or in code of scripts. A page with more
than `MOST_LEFT` is refused.
"""
CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w:.-]{1,40})", re.IGNORECASE)
CHARSET_BYTES = 4_096
BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
# As browsers read them: a page that says Latin-1 means the code page of Windows.
READ_AS = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932"}
ENCODINGS = frozenset(
    {"utf-8", "utf-16", "utf-16-le", "utf-16-be", "gb18030", "big5", "big5hkscs", "cp932", "euc_jp", "iso2022_jp"}
    | {"euc_kr", "cp949", "koi8-r", "koi8-u", "cp874", "tis-620"}
    | {f"cp125{number}" for number in range(9)}
    | {f"iso8859-{number}" for number in range(2, 17)}
)
# Of what draws nothing, only what shapes emoji and letters stays: no control turns the words around a title round.
UNSEEN = compiled(rf"(?:[{INVISIBLE}--{SHAPING}])+")


class Page(NamedTuple):
    """A page elsewhere, by its own words."""

    title: str
    description: str
    site: str
    picture: str


class NothingError(outbound.OutboundError):
    """The page does not say what it is."""


def read(url: str, *, member: int) -> tuple[Page, str]:
    """Read a page for a member. Returns its facts and the address where redirects ended. Raises OutboundError."""
    answer = outbound.get(url, types=HTML, member=member)
    if answer.status != 200:
        raise outbound.OutboundError(f"status {answer.status}")
    return page_of(text_of(answer.body, answer.headers.get("Content-Type", "")), answer.url), answer.url


def read_picture(url: str, *, member: int) -> bytes:
    """The file of a picture. Raises outbound.OutboundError."""
    answer = outbound.get(url, types=PICTURES, member=member)
    if answer.status != 200 or not answer.is_whole:
        raise outbound.OutboundError("no whole picture")
    return answer.body


def text_of(body: bytes, content_type: str) -> str:
    """The text of a page, by its or its server's encoding."""
    for bom, encoding in BOMS.items():
        if body.startswith(bom):
            return body[len(bom) :].decode(encoding, errors="replace")
    named = re.search(r"charset\s*=\s*[\"']?([\w:.-]{1,40})", content_type, re.IGNORECASE)
    said = CHARSET.search(body[:CHARSET_BYTES])
    encoding = _encoding(named[1] if named else said[1].decode("ascii") if said else "")
    return body.decode(encoding, errors="replace")


def _encoding(name: str) -> str:
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return "utf-8"
    found = READ_AS.get(found, found)
    return found if found in ENCODINGS else "utf-8"


def page_of(text: str, url: str) -> Page:
    """What a page says of itself. Raises NothingError without a title, and for one made to be slow."""
    flat = NESTING.sub("", text)
    if len(LEFT.findall(flat)) > MOST_LEFT:
        raise NothingError("tags within tags")
    tree = LexborHTMLParser(flat)
    said = dict(reversed(list(_properties(tree))))  # the first of a name counts
    title = tree.css_first("title")
    found = Page(
        title=_first(said, ("og:title", "twitter:title"), TITLE_LENGTH)
        or plain(title.text() if title else "", TITLE_LENGTH),
        description=_first(said, ("og:description", "twitter:description", "description"), DESCRIPTION_LENGTH),
        site=_first(said, ("og:site_name", "application-name"), SITE_LENGTH),
        picture=_address(_said(said, ("og:image:secure_url", "og:image", "og:image:url", "twitter:image")), url),
    )
    if not found.title:
        raise NothingError("no title")
    return found


def _properties(tree: LexborHTMLParser) -> Iterator[tuple[str, str]]:
    for meta in tree.css("meta[content]"):
        name = meta.attributes.get("property") or meta.attributes.get("name")
        if name:
            yield name.strip().lower(), meta.attributes.get("content") or ""


def _said(said: dict[str, str], names: tuple[str, ...]) -> str:
    return next((said[name] for name in names if said.get(name)), "")


def _first(said: dict[str, str], names: tuple[str, ...], most: int) -> str:
    return next(filter(None, (plain(said[name], most) for name in names if name in said)), "")


def _address(picture: str, url: str) -> str:
    picture = picture.strip()
    if not picture or len(picture) > URL_LENGTH:
        return ""
    try:
        address = urljoin(url, picture)
    except ValueError:
        return ""
    return address if is_link(address, is_secure=False) else ""


def plain(text: str, most: int) -> str:
    """Words of a page as one line of at most `most` letters."""
    text = stream_safe(UNSEEN.sub(" ", text[: most * LOOKED_AT])).replace("\x00", "").strip()
    return text if len(text) <= most else f"{beginning(text, most - 1)}…"
