"""HTML from other sites as plain text, in linear time.

A mention becomes `@name@host`, so it names a user here only if the host is this site. Links are written in full:
ActivityPub sites shorten them.
"""

import html
import re
from urllib.parse import urlsplit

from items.text import SpanKind, spans
from web.strict_json import UNSTORABLE

LONGEST = 200_000
"""Maximum characters of HTML."""
PARAGRAPHS = frozenset({"p", "ul", "ol", "blockquote", "pre", "div", "h1", "h2", "h3", "h4", "h5", "h6"})
SILENT = frozenset({"script", "style", "template", "title", "head", "iframe", "object"})
# Python's own parser takes quadratic time for some inputs (`<a b=<a b=`). Here a tag ends before the next `<`:
# ActivityPub sites write `&lt;`.
_TAG = re.compile(r"""<(/?)([A-Za-z][A-Za-z0-9]*+)((?:[^<>"']|"[^"<]*+"|'[^'<]*+')*+)>|<[!?][^<>]*+>""")
_ATTRIBUTE = re.compile(r"""(?<![\w-])(href|class)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"']++))""", re.IGNORECASE)
_NAME = re.compile(r"@([\w.-]+)(?:@([\w.:-]+))?")
_SPACES = re.compile(r"[ \t\r\n\f]+")
_KEPT_SPACE = "\x01"
"""Stands for a space in `<pre>` while other spaces are collapsed. It is removed from the input first."""
_CONTROLS = re.compile("[\x02-\x08\x0b\x0c\x0e-\x1f\x7f]")


class _TextReader:
    """Reads HTML as plain text. `_link` is the text of an open link."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._link: list[str] | None = None
        self._href = self._class = ""
        self._silent = self._pre = 0

    def read(self, said: str) -> str:
        done = 0
        for tag in _TAG.finditer(said):
            self._add_text(said[done : tag.start()])
            done = tag.end()
            if tag[1]:
                self._end(tag[2].lower())
            elif tag[2]:
                self._begin(tag[2].lower(), tag[3])
        self._add_text(said[done:])
        return "".join([*self._parts, *(self._link or ())])

    def _begin(self, tag: str, attributes: str) -> None:
        if tag in SILENT:
            self._silent += 1
        elif tag == "br":
            self._append("\n")
        elif tag == "li":
            self._append("\n- ")
        elif tag in PARAGRAPHS:
            self._append("\n\n")
            self._pre += tag == "pre"
        elif tag == "a" and self._link is None:
            found = _ATTRIBUTE.finditer(attributes)
            known = {one[1].lower(): html.unescape(one[2] or one[3] or one[4] or "") for one in found}
            self._href, self._class = known.get("href", ""), known.get("class", "")
            self._link = []

    def _end(self, tag: str) -> None:
        if tag in SILENT:
            self._silent = max(0, self._silent - 1)
        elif tag in PARAGRAPHS:
            self._append("\n\n")
            self._pre = max(0, self._pre - (tag == "pre"))
        elif tag == "a" and self._link is not None:
            words, self._link = "".join(self._link), None
            self._append(_link_text(words, self._href, self._class.split()))

    def _add_text(self, said: str) -> None:
        """Add the text between two tags. Line feeds only count in `<pre>`."""
        if not said or self._silent:
            return
        if self._pre:
            lines = html.unescape(said).replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
            self._append(lines.replace(" ", _KEPT_SPACE))
        else:
            self._append(html.unescape(_SPACES.sub(" ", said)))

    def _append(self, words: str) -> None:
        (self._parts if self._link is None else self._link).append(words)


def text_of(said: str) -> str:
    """The text of the first `LONGEST` characters of HTML."""
    text = _CONTROLS.sub("", UNSTORABLE.sub("", _TextReader().read(said[:LONGEST].replace(_KEPT_SPACE, ""))))
    lines = [line.strip(" ").rstrip(_KEPT_SPACE) for line in text.split("\n")]
    return re.sub("\n{3,}", "\n\n", "\n".join(lines)).strip().replace(_KEPT_SPACE, " ")


def _add_mention_host(text: str, host: str) -> str:
    if not host or "@" not in text:
        return text
    return "".join(
        f"{span.text}@{host}" if span.kind == SpanKind.MENTION and "@" not in span.text[1:] else span.text
        for span in spans(text)
    )


def _link_text(words: str, href: str, classes: list[str]) -> str:
    """The text of a link: a hashtag, a mention, or the address, after its words if these say more."""
    words = words.strip()
    address = _address(href)
    if not address or "hashtag" in classes or words.startswith("#"):
        return words
    host = urlsplit(address).hostname or ""
    if name := _NAME.fullmatch(words):
        return f"@{name[1]}@{name[2] or host}"
    if "mention" in classes and _NAME.fullmatch(f"@{words}"):
        return f"@{words}@{host}"
    words = _add_mention_host(words, host)
    bare = re.sub(r"^https?://(www\.)?", "", address)
    is_shortened = not words or bare.startswith(re.sub(r"^https?://(www\.)?", "", words).rstrip("…."))
    return address if is_shortened else f"{words} ({address})"


def _address(href: str) -> str:
    href = href.strip()
    try:
        parts = urlsplit(href)
        return href if parts.scheme in ("http", "https") and parts.hostname and not re.search(r"\s", href) else ""
    except ValueError:
        return ""
