"""Limits of an item, the shape of its `content`, and the parts of its text."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from items.links import HOST, PORT, is_host, is_link
from items.models import URL_LENGTH, ItemType
from web.hashtags import TAG, canonical_tag
from web.hosts import is_own
from web.languages import is_code
from web.letters import COMPLEX, LETTER, SHAPING, UNSPACED, compiled, is_blank
from web.refusals import RefusalError

TITLE_LENGTH = 200
TEXT_LENGTH = 5_000
ARTICLE_LENGTH = 20_000
"""Most characters of an article, and of any text before links are shortened."""
LINK_LENGTH = 23
"""Most characters that a link counts for, as in Mastodon's apps."""
WARNING_LENGTH = 200
MEDIA_AN_ITEM = 4
FEWEST_OPTIONS, MOST_OPTIONS = 2, 6
OPTION_LENGTH = 80
POLL_FIELD = "content.poll"
MEDIA_ID = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)


class ContentError(RefusalError, ValueError):
    """The content does not fit. The message is for people."""

    def __init__(self, message: str, field: str = "content") -> None:
        super().__init__(message)
        self.field = field


def check_content(item_type: str, content: dict[str, Any], title: str | None = None) -> None:
    """Raise ContentError unless `content` fits the type. `title` None: unchanged. Unknown keys are allowed."""
    check_warning(content)
    _check_language(content)
    media = media_ids(content)
    if media and item_type not in (ItemType.IMAGE, ItemType.VIDEO):
        raise ContentError("Only items of type image or video can have media.", field="content.media")
    if item_type == ItemType.ARTICLE and title is not None and is_blank(title):
        raise ContentError(_("Give your article a title."), field="title")
    check_poll(item_type, content)
    url = _checked_url(content)
    longest = ARTICLE_LENGTH if item_type == ItemType.ARTICLE else TEXT_LENGTH
    text = content.get("text", "")
    if not isinstance(text, str):
        raise ContentError(_("content.text must be a string."))
    if len(text) > ARTICLE_LENGTH or (len(text) > longest and counted_length(text) > longest):
        words = ngettext(
            "The text can have up to %(count)d character. Shorten it.",
            "The text can have up to %(count)d characters. Shorten it.",
            longest,
        )
        raise ContentError(words % {"count": longest})
    if item_type in (ItemType.TEXT, ItemType.ARTICLE) and is_blank(text):
        raise ContentError(_("The text is empty."))
    if is_blank(text) and not url and not media and item_type != ItemType.POLL:
        raise ContentError(_("Add some text or a link."))


def _checked_url(content: dict[str, Any]) -> str:
    url = content.get("url", "")
    if not isinstance(url, str):
        raise ContentError(_("content.url must be a string."))
    if url and not is_link(url):
        raise ContentError(_("content.url must be a web address that starts with https://, without spaces."))
    if len(url) > URL_LENGTH:
        words = ngettext(
            "The link can have up to %(count)d character.", "The link can have up to %(count)d characters.", URL_LENGTH
        )
        raise ContentError(words % {"count": URL_LENGTH})
    return url


def counted_length(text: str) -> int:
    """The characters of a text, with long links shortened, also next to @ and #. counting.js counts in the same way."""
    count, at = len(text), 0
    while start := _LINK_START.search(text, at):
        span, at = _link(text, start.start(), start.end())
        count -= max(len(span.text) - LINK_LENGTH, 0) if span else 0
    return count


def check_warning(content: dict[str, Any]) -> None:
    """Raise ContentError for a wrong warning or `sensitive`."""
    warning = content.get("warning", "")
    if not isinstance(warning, str):
        raise ContentError("content.warning must be a string.", field="content.warning")
    if len(warning) > WARNING_LENGTH:
        words = ngettext(
            "The content warning can have up to %(count)d character.",
            "The content warning can have up to %(count)d characters.",
            WARNING_LENGTH,
        )
        raise ContentError(words % {"count": WARNING_LENGTH}, field="content.warning")
    if not isinstance(content.get("sensitive", False), bool):
        raise ContentError("content.sensitive must be true or false.", field="content.sensitive")


def _check_language(content: dict[str, Any]) -> None:
    language = content.get("language", "")
    if not isinstance(language, str) or (language and not is_code(language)):
        raise ContentError("content.language must be a code such as en or zh-Hant.", field="content.language")


def media_ids(content: dict[str, Any]) -> list[int]:
    """The media ids in order. Raises ContentError."""
    media = content.get("media", [])
    if not (isinstance(media, list) and all(isinstance(one, str) and MEDIA_ID.fullmatch(one) for one in media)):
        raise ContentError("content.media must be a list of ids, which are decimal strings.", field="content.media")
    if len(media) > MEDIA_AN_ITEM or len(set(media)) < len(media):
        words = ngettext(
            "A post can have up to %(count)d picture. Remove some.",
            "A post can have up to %(count)d pictures. Remove some.",
            MEDIA_AN_ITEM,
        )
        raise ContentError(words % {"count": MEDIA_AN_ITEM}, field="content.media")
    return [int(each) for each in media]


# --- Polls -----------------------------------------------------------------------------------------------
def check_poll(item_type: str, content: dict[str, Any]) -> None:
    """Raise ContentError unless a poll, and only that, has a right `poll`."""
    if item_type != ItemType.POLL:
        if "poll" in content:
            raise ContentError("Only items of type poll can have a poll.", POLL_FIELD)
        return
    poll = content.get("poll")
    if not isinstance(poll, dict) or set(poll) - {"options", "multiple", "closes_at", "closes_in"}:
        raise ContentError("content.poll must have options and closes_at, and may have multiple.", POLL_FIELD)
    _check_options(poll.get("options"))
    if not isinstance(poll.get("multiple", False), bool):
        raise ContentError("content.poll.multiple must be true or false.", POLL_FIELD)
    poll_end(poll)


def _check_options(options: Any) -> None:
    if not isinstance(options, list) or not all(isinstance(text, str) for text in options):
        raise ContentError("content.poll.options must be a list of texts.", POLL_FIELD)
    if not FEWEST_OPTIONS <= len(options) <= MOST_OPTIONS:
        words = ngettext(
            "A poll needs %(least)d to %(most)d option.", "A poll needs %(least)d to %(most)d options.", MOST_OPTIONS
        )
        raise ContentError(words % {"least": FEWEST_OPTIONS, "most": MOST_OPTIONS}, POLL_FIELD)
    if any(is_blank(text) for text in options):
        raise ContentError(_("Fill in all options of the poll."), POLL_FIELD)
    if any(len(text) > OPTION_LENGTH for text in options):
        words = ngettext(
            "An option can have up to %(count)d character.",
            "An option can have up to %(count)d characters.",
            OPTION_LENGTH,
        )
        raise ContentError(words % {"count": OPTION_LENGTH}, POLL_FIELD)
    if len({text.strip().casefold() for text in options}) < len(options):
        raise ContentError(_("Two options are the same. Change one."), POLL_FIELD)


def poll_end(poll: Mapping[str, Any]) -> datetime:
    """When voting ends. Raises ContentError."""
    seconds, text = poll.get("closes_in"), poll.get("closes_at")
    if isinstance(seconds, int) and not isinstance(seconds, bool) and text is None and 0 <= seconds <= 10**9:
        return timezone.now().replace(microsecond=0) + timedelta(seconds=seconds)
    try:
        closes_at = parse_datetime(text) if isinstance(text, str) and seconds is None else None
        if closes_at is not None and closes_at.tzinfo is not None:
            return closes_at.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ContentError("content.poll.closes_at must be a time with its zone.", POLL_FIELD)


def poll_options(content: Mapping[str, Any]) -> list[str]:
    """The answers of the poll, if any."""
    options: list[str] = (content.get("poll") or {}).get("options", [])
    return options


# --- Parts of a text: mentions, hashtags, links -----------------------------------------------------------
TAGS_AN_ITEM = 30
# Chinese keyboards write the signs in full width.
_AT = "@\uff20"
_HASH = "#\uff03"
# Where a part may begin. ASCII, so that no other letter matches as the lower case of one of these.
_LINK_START = re.compile(r"https?://|www\.", re.ASCII | re.IGNORECASE)
_START = re.compile(f"{_LINK_START.pattern}|[{_AT}](?=[a-z0-9_-])|[{_HASH}](?=[^{_HASH}\\s])", re.ASCII | re.IGNORECASE)
_UNSPACED = compiled(UNSPACED)
# A letter, digit or underscore that continues a word next to a Latin one.
_IN_SPACED_WORD = compiled(f"[{LETTER}--[{UNSPACED}{COMPLEX}\\p{{Me}}\\p{{Default_Ignorable_Code_Point}}]]")
_NAME = re.compile(r"[A-Za-z0-9_-]++")
_NAME_LENGTH = 30
_DOMAIN = compiled(f"(?:{HOST.pattern})(?:{PORT.pattern})?")
# In a path: letters with marks, symbols and emoji, but no full-width signs, which belong to the text around it.
_BETWEEN_PARTS = "/?#&="
_IN_PART = (
    r"(?:[-!$%'()*+,.0-9:;@A-Z_a-z~\[\]]|"
    rf"[[{LETTER}\p{{S}}{SHAPING}]--[\x00-\x7f{UNSPACED}\p{{East_Asian_Width=F}}]])"
)
# Ideographs belong to a path in a part that begins with one (/wiki/第1次世界大戦, ?q=微博), or where titles and words
# stand (/wiki/C语言). Elsewhere they are the text after it.
_TITLED = (
    r"(?<=/(?:wiki|w|item|word|keyword|tags?|search|zh|zh-[a-z]{2,4})/"
    r"|[?&](?:q|wd|word|words|keyword|query|search|title|tag)=)"
)
_PATH = compiled(
    f"(?:/(?!{UNSPACED})|[?#])"
    f"(?:(?:(?<=[/=#]){UNSPACED}|{_TITLED}{_IN_PART})(?:{_IN_PART}|{UNSPACED}|[\u00b7\u30fb](?={UNSPACED}))*+"
    f"|[{_BETWEEN_PARTS}]|{_IN_PART})*+|/"
)
# Top-level domains in unspaced scripts, to find the end of a host that Chinese text follows.
_WIDE_DOMAIN = re.compile(
    "中国|中國|香港|台湾|台灣|澳门|澳門|新加坡|公司|网络|網絡|网址|网站|網站|在线|中文网|移动|集团|政务|公益|商城|我爱你|"
    "信息|商标|商店|手机|时尚|机构|游戏|娱乐|健康|购物|广东|佛山|한국|닷컴|みんな|コム"
)
_CLOSERS = {")": "(", "]": "["}
_PUNCTUATION = ".,;:!?'*&"


class SpanKind(StrEnum):
    """The kinds of a part of a text."""

    TEXT = "text"
    MENTION = "mention"
    HASHTAG = "hashtag"
    LINK = "link"


class Span(NamedTuple):
    """A part of a text, and its value: the name, the canonical tag, the address."""

    kind: SpanKind
    text: str
    value: str


def spans(text: str) -> Iterator[Span]:
    """Cut `text` into plain text, mentions, hashtags and links, in linear time. Joined, they are `text` again.

    - A mention is @ and a username, perhaps with @ and a domain of this site. No letter or digit of a spaced script may
      be next to it, and no / except after a mention or hashtag. A hyphen at its end is not part of it.
    - A hashtag is # and at most 100 letters, digits and underscores, with at least one letter. Joiners and
      middle dots may be inside. Another # may close one in a script without spaces (#小事#).
    - A link begins with http://, https:// or www. It ends before punctuation of the sentence, and before a
      Chinese character outside its path (看https://example.com/a很好).
    """
    done = at = 0
    is_after_name = False
    while start := _START.search(text, at):
        sign, begin = start[0], start.start()
        is_next = is_after_name and done == begin - 1 and text[done] == "/"  # @tomas/@mira
        if sign in _AT:
            span, at = _mention(text, begin, is_next)
        elif sign in _HASH:
            span, at = _hashtag(text, begin, done, is_next)
        else:
            span, at = _link(text, begin, start.end())
        if span:
            if done < begin:
                yield Span(SpanKind.TEXT, text[done:begin], "")
            yield span
            done = at
            is_after_name = span.kind != SpanKind.LINK
    if done < len(text):
        yield Span(SpanKind.TEXT, text[done:], "")


def mentions(text: str) -> list[str]:
    """The names in `text`, once in any case."""
    names: dict[str, str] = {}
    for span in spans(text):
        if span.kind == SpanKind.MENTION:
            names.setdefault(span.value.lower(), span.value)
    return list(names.values())


def hashtags(text: str) -> list[str]:
    """The canonical tags, at most `TAGS_AN_ITEM`."""
    tags = (span.value for span in spans(text) if span.kind == SpanKind.HASHTAG)
    return list(dict.fromkeys(tags))[:TAGS_AN_ITEM]


def links(text: str) -> list[str]:
    """The addresses. www. becomes https://www."""
    return list(dict.fromkeys(span.value for span in spans(text) if span.kind == SpanKind.LINK))


def _in_spaced_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and _IN_SPACED_WORD.match(text, at) is not None


def _mention(text: str, begin: int, is_next: bool) -> tuple[Span | None, int]:
    after = _NAME.match(text, begin + 1).end()  # type: ignore[union-attr]  # _START saw that it begins
    end = begin + len(text[begin:after].rstrip("-"))
    before = text[begin - 1] if begin else ""
    if (
        _in_spaced_word(text, begin - 1)
        or (before and before in _AT)
        or (before == "/" and not is_next)
        or (before and before in ".%+-" and _in_spaced_word(text, begin - 2))  # the first part of an e-mail address
        or not 1 < end - begin <= _NAME_LENGTH + 1
        or _in_spaced_word(text, after)
    ):
        return None, after
    name = text[begin + 1 : end]
    if after < len(text) and text[after] in _AT:
        # With a domain: a user of this site. Users of other sites are no mentions.
        domain = _DOMAIN.match(text, after + 1)
        if end < after or domain is None or not is_own(domain[0].lower()):
            return None, after
        end = domain.end()
        if _in_spaced_word(text, end) or (end < len(text) and text[end] in _AT):
            return None, end
    return Span(SpanKind.MENTION, text[begin:end], name), end


def _hashtag(text: str, begin: int, done: int, is_next: bool) -> tuple[Span | None, int]:
    found = TAG.match(text, begin + 1)
    if found is None:
        return None, begin + 1
    end = found.end()
    before = text[begin - 1] if begin > done else ""
    tag = canonical_tag(found[0])
    if (
        tag is None
        or _in_spaced_word(text, begin - 1)
        or (before and before in f"&{_HASH}")
        or (before == "/" and not is_next)
    ):
        return None, end
    if end < len(text) and text[end] in _HASH and _UNSPACED.search(text, begin, end):
        end += 1
    return Span(SpanKind.HASHTAG, text[begin:end], tag), end


def _link(text: str, begin: int, after: int) -> tuple[Span | None, int]:
    bare = text[after - 1] == "."
    before = text[begin - 1] if begin else ""
    if _in_spaced_word(text, begin - 1) or (bare and before and before in "@./-"):
        return None, after
    host = HOST.match(text, begin if bare else after)
    if host is None:
        return None, after
    name, end = host[0], host.end()
    rest, dot, last = name.rpartition(".")
    if _UNSPACED.match(last):
        known = _WIDE_DOMAIN.match(last)
        name = f"{rest}{dot}{known[0]}" if known else rest
        end = host.start() + len(name)
    if not is_host(name) or (bare and name.count(".") < 2):
        return None, after
    if port := PORT.match(text, end):
        end = port.end()
    if path := _PATH.match(text, end):
        end = _without_punctuation(text, begin, end, path.end())
    written = text[begin:end]
    address = f"https://{written}" if bare else written
    return (Span(SpanKind.LINK, written, address), end) if is_link(address, is_secure=False) else (None, after)


def _without_punctuation(text: str, begin: int, least: int, end: int) -> int:
    """Where a link ends before punctuation. A closing bracket that the link did not open is not part of it."""
    open_ = {
        closer: text.count(opener, begin, end) - text.count(closer, begin, end) for closer, opener in _CLOSERS.items()
    }
    while end > least:
        last = text[end - 1]
        if last in _CLOSERS and open_[last] < 0:
            open_[last] += 1
        elif last not in _PUNCTUATION:
            break
        end -= 1
    return end
