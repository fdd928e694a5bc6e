"""The HTML of posts of other sites as the text of this one: paragraphs, links, mentions and hashtags.

A mention becomes `@name@host`, which is no mention here and tells no user. Links stand in full: sites of ActivityPub
shorten them for the eye. Takes time in proportion to the HTML.
"""

import re
from html.parser import HTMLParser
from urllib.parse import urlsplit

from web.strict_json import UNSTORABLE

LONGEST = 200_000
"""Characters of HTML that are read."""
PARAGRAPHS = frozenset({"p", "ul", "ol", "blockquote", "pre", "div", "h1", "h2", "h3", "h4", "h5", "h6"})
SILENT = frozenset({"script", "style", "template", "title", "head", "iframe", "object"})
_SPACES = re.compile(r"[ \t\r\n\f]+")
_CONTROLS = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]")


class _Text(HTMLParser):
    """Collects text; `_link` are the words of the link that is open."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._link: list[str] | None = None
        self._href = self._class = ""
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a paragraph, a line, an entry of a list or a link."""
        if tag in SILENT:
            self._silent += 1
        elif tag == "br":
            self._say("\n")
        elif tag == "li":
            self._say("\n- ")
        elif tag in PARAGRAPHS:
            self._say("\n\n")
        elif tag == "a" and self._link is None:
            known = dict(attrs)
            self._href, self._class = known.get("href") or "", known.get("class") or ""
            self._link = []

    def handle_endtag(self, tag: str) -> None:
        """End what began."""
        if tag in SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag in PARAGRAPHS:
            self._say("\n\n")
        elif tag == "a" and self._link is not None:
            words, self._link = "".join(self._link), None
            self._say(_linked(words, self._href, self._class.split()))

    def handle_data(self, data: str) -> None:
        """Words, whose line feeds mean nothing in HTML."""
        if not self._silent:
            self._say(_SPACES.sub(" ", data))

    def _say(self, words: str) -> None:
        (self._parts if self._link is None else self._link).append(words)

    def text(self) -> str:
        """All that was said."""
        self.close()
        return "".join([*self._parts, *(self._link or ())])


def text_of(html: str) -> str:
    """The text of a piece of HTML; what is behind the first `LONGEST` characters is not read."""
    reader = _Text()
    reader.feed(html[:LONGEST])
    text = _CONTROLS.sub("", UNSTORABLE.sub("", reader.text()))
    lines = [line.strip(" ") for line in text.split("\n")]
    return re.sub("\n{3,}", "\n\n", "\n".join(lines)).strip()


def _linked(words: str, href: str, classes: list[str]) -> str:
    """A link as text: a hashtag or a mention as such, the address of another, behind its words where they say more."""
    words = words.strip()
    address = _address(href)
    if not address or "hashtag" in classes or words.startswith("#"):
        return words
    host = urlsplit(address).hostname or ""
    if "mention" in classes or words.startswith("@"):
        name = words.removeprefix("@").partition("@")[0]
        return f"@{name}@{host}" if name else address
    bare = re.sub(r"^https?://(www\.)?", "", address)
    is_shortened = not words or bare.startswith(re.sub(r"^https?://(www\.)?", "", words).rstrip("…."))
    return address if is_shortened else f"{words} ({address})"


def _address(href: str) -> str:
    """The address that a link leads to; nothing for one that is no address of the web."""
    href = href.strip()
    try:
        parts = urlsplit(href)
        return href if parts.scheme in ("http", "https") and parts.hostname and not re.search(r"\s", href) else ""
    except ValueError:
        return ""
