"""Reading what a page says of itself, in one pass over its text.

Strangers write pages, so the time is in proportion to the length: nothing is read twice, no expression steps back, and
no tree is built. Tags and raw text end where the HTML standard's tokenizer ends them.
"""

import re
from collections.abc import Iterator
from html import unescape
from html.entities import html5
from typing import NamedTuple

from web.letters import is_blank
from web.outbound import OutboundError

MOST_ATTRIBUTES = 100
MOST_OPEN = 100
"""Drawings, formulas and templates that may be open at once."""
MOST_VALUES = 5
"""Values that are kept of one name."""
VALUE_LENGTH = 4_000
"""Characters that are kept of a value, before references are resolved. Python reads numbers of 4,300 digits."""
NAMES = frozenset(
    {"og:title", "og:description", "og:site_name", "og:image:secure_url", "og:image", "og:image:url"}
    | {"twitter:title", "twitter:description", "twitter:image", "twitter:image:src"}
    | {"description", "application-name", "image_src"}
)

SPACE = " \t\n\f\r"
MARKUP = re.compile(rf"<(?:(/?)([A-Za-z][^{SPACE}/>]*+)|!--|[!?/])")
_ATTRIBUTE = re.compile(
    rf"[{SPACE}/]*+(?:(>)|([^{SPACE}/>][^{SPACE}/>=]*+)"
    # An open quotation mark takes all that follows.
    rf"(?:[{SPACE}]*+=[{SPACE}]*+(\"[^\"]*+\"?+|'[^']*+'?+|[^{SPACE}>]*+))?)"
)
_COMMENT = re.compile(r"(?<=<!--)-?>|--!?>")
_SCRIPT = re.compile(rf"<!--(?:-*+>)?|-->|<(/?)script(?=[{SPACE}/>])", re.IGNORECASE | re.ASCII)
# What browsers with scripts read as text.
_RAW = ("iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "textarea", "title", "xmp")
_ENDS = {name: re.compile(rf"</{name}(?=[{SPACE}/>])", re.IGNORECASE | re.ASCII) for name in _RAW}
_FOREIGN = frozenset({"svg", "math"})
_OPENED = _FOREIGN | {"template"}
_OPENED_IN_FOREIGN = _FOREIGN | {"foreignobject"}
_READ = frozenset({"title", "meta", "link", "base"})
# Elements of HTML that end a drawing or a formula.
_LEAVING = frozenset(
    {"b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "h1", "h2"}
    | {"h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol", "p", "pre"}
    | {"ruby", "s", "small", "span", "strike", "strong", "sub", "sup", "table", "tt", "u", "ul", "var"}
)
_CHARSET = re.compile(
    rf"charset[{SPACE}]*+=[{SPACE}]*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\"'{SPACE};][^{SPACE};]*+))",
    re.IGNORECASE | re.ASCII,
)
# In an attribute, `&copy=` is part of an address.
_REFERENCE = re.compile(r"&(?:#[0-9]++;?|#[Xx][0-9A-Fa-f]++;?|[A-Za-z0-9]++(?:;|(?!=)))")


class NoMetadataError(OutboundError):
    """The page does not say what it is."""


class Head(NamedTuple):
    """What a page says of itself. `said` has the values of each of `NAMES`, in order, `labels` those of encodings."""

    title: str
    said: dict[str, list[str]]
    base: str
    labels: list[str]
    refresh: str

    @property
    def words(self) -> str:
        return " ".join([self.title, *(value for values in self.said.values() for value in values)])


class _Element(NamedTuple):
    name: str
    attributes: dict[str, str]
    text: str


def scan(text: str, *, is_xml: bool = False) -> Head:
    """Read a page. Raises NoMetadataError for one that was made to be slow."""
    title = base = refresh = ""
    labels: list[str] = []
    said: dict[str, list[str]] = {}
    for name, attributes, words in _elements(text, is_xml=is_xml):
        if name == "title":
            title = title if not is_blank(title) else unescape(words)
        elif name == "base":
            base = base or _unescaped(attributes.get("href", ""))
        elif name == "link":
            if "image_src" in attributes.get("rel", "").lower().split():
                _add_value(said, "image_src", attributes.get("href", ""))
        else:
            content = attributes.get("content", "")
            _add_value(
                said, _unescaped(attributes.get("property") or attributes.get("name", "")).strip().lower(), content
            )
            if len(labels) < MOST_VALUES and (label := label_of(attributes)):
                labels.append(label)
            if attributes.get("http-equiv", "").strip().lower() == "refresh":
                refresh = refresh or _unescaped(content)
    return Head(title, said, base, labels, refresh)


def label_of(attributes: dict[str, str]) -> str:
    """The encoding that a meta element names, or ""."""
    if "charset" in attributes:
        return attributes["charset"].strip(SPACE)
    if attributes.get("http-equiv", "").lower() != "content-type":
        return ""
    found = _CHARSET.search(attributes.get("content", ""))
    return found[found.lastindex or 0] if found else ""


def attributes_of(text: str, at: int) -> tuple[dict[str, str], bool, int] | None:
    """The attributes of a tag, whether it closes itself, and where it ends. None if the text ends first."""
    found: dict[str, str] = {}
    for _number in range(MOST_ATTRIBUTES + 1):
        part = _ATTRIBUTE.match(text, at)
        if part is None:
            return None
        at = part.end()
        end, name, value = part.groups("")
        if end:
            return found, part[0].endswith("/>"), at
        found.setdefault(_lower(name), (value[1:-1] if value.startswith(("'", '"')) else value)[:VALUE_LENGTH])
    raise NoMetadataError("too many attributes")


def comment_end(text: str, mark: re.Match[str], *, has_sections: bool = False) -> int:
    """Where a comment, a declaration or a CDATA section ends: at the text's end if it is open."""
    if mark[0] == "<!--":
        found = _COMMENT.search(text, mark.end())
        return found.end() if found else len(text)
    end = "]]>" if has_sections and text.startswith("[CDATA[", mark.end()) else ">"
    at = text.find(end, mark.end())
    return at + len(end) if at >= 0 else len(text)


def _elements(text: str, *, is_xml: bool) -> Iterator[_Element]:
    """The titles, metas, links and bases of a page itself, not those of its drawings and templates."""
    at, opened = 0, list[str]()
    while mark := MARKUP.search(text, at):
        if mark[2] is None:
            at = comment_end(text, mark, has_sections=is_xml or _is_foreign(opened))
            continue
        name = _lower(mark[2])
        read = attributes_of(text, mark.end())
        if read is None:
            return
        attributes, is_closed, at = read
        if mark[1]:
            _close_element(opened, name)
            continue
        _open_element(opened, name, is_closed=is_closed)
        if _is_foreign(opened):
            continue
        words = ""
        if name in _ENDS and not (is_xml and is_closed):
            end = _text_end(name, text, at)
            words, at = text[at : min(end, at + VALUE_LENGTH)], end
        if name in _READ and not opened:
            yield _Element(name, attributes, words)


def _is_foreign(opened: list[str]) -> bool:
    return bool(opened) and opened[-1] in _FOREIGN


def _open_element(opened: list[str], name: str, *, is_closed: bool) -> None:
    if name in _LEAVING:
        _leave_foreign(opened)
    if name not in (_OPENED_IN_FOREIGN if _is_foreign(opened) else _OPENED) or (is_closed and name != "template"):
        return
    if len(opened) == MOST_OPEN:
        raise NoMetadataError("tags within tags")
    opened.append(name)


def _leave_foreign(opened: list[str]) -> None:
    while _is_foreign(opened):
        opened.pop()


def _close_element(opened: list[str], name: str) -> None:
    if name in {"br", "p"}:
        _leave_foreign(opened)
    elif name in opened:
        while opened.pop() != name:
            pass


def _text_end(name: str, text: str, at: int) -> int:
    """Where the text of an element ends: before its end tag."""
    if name == "plaintext":
        return len(text)
    if name != "script":
        end = _ENDS[name].search(text, at)
        return end.start() if end else len(text)
    # A comment in a script may hold a script.
    in_comment = in_script = False
    for mark in _SCRIPT.finditer(text, at):
        if mark[0].startswith("<!"):
            in_comment = not mark[0].endswith(">")
            in_script = in_script and in_comment
        elif mark[0] == "-->":
            in_comment = in_script = False
        elif not mark[1]:
            in_script = in_comment
        elif in_script:
            in_script = False
        else:
            return mark.start()
    return len(text)


def _add_value(said: dict[str, list[str]], name: str, value: str) -> None:
    if name in NAMES and len(values := said.setdefault(name, [])) < MOST_VALUES:
        values.append(_unescaped(value))


def _unescaped(value: str) -> str:
    """The value of an attribute without character references."""
    return _REFERENCE.sub(
        lambda found: unescape(found[0]) if found[0][1] == "#" or found[0][1:] in html5 else found[0], value
    )


def _lower(name: str) -> str:
    return name.lower() if name.isascii() else name
