"""Decides whether an item is held: by sender, rate, repetition, links, words and pictures.

A process compiles the word list once per version, and reads the version in the publishing transaction, so a change
applies to everything published after it. The version is random: a counter could repeat after a restore.
"""

import logging
import time
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from accounts.models import User
from accounts.review import Submission
from items.filters.matching import Matcher, Word, fold, marked
from items.models import Item, Visibility
from items.text import links, poll_options
from items.visibility import for_others
from media import captioning
from media.files import StoreError
from moderation import hashes
from moderation.models import SenderKind
from storage.connections import fetch
from storage.ids import compose

logger = logging.getLogger(__name__)

SCANNED = 200
"""Most items of a sender searched for repetitions."""
MOST = 1_000
"""Highest rate that is counted. A higher setting means no limit."""
SHORTEST = 10
"""Shorter texts are no repetitions: people thank many others in an hour."""
NAMED = 10
"""Words named in a reason."""

SENDER = """
    SELECT u.is_staff, r.kind, u.date_joined > now() - %(new)s, v.version
    FROM accounts_user u
    LEFT JOIN moderation_senderrule r ON r.user_id = u.id
    LEFT JOIN moderation_wordlistversion v ON true
    WHERE u.id = %(sender)s
"""
CONTEXT = """
    SELECT u.is_staff, r.kind, u.date_joined > now() - %(new)s, v.version, recent.burst, recent.same
    FROM accounts_user u
    LEFT JOIN moderation_senderrule r ON r.user_id = u.id
    LEFT JOIN moderation_wordlistversion v ON true
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE i.id > %(burst_above)s),
            count(*) FILTER (WHERE i.id > %(same_above)s AND i.content->>'text' = %(text)s)
        FROM (
            SELECT id, content FROM items_item
            WHERE sender_id = u.id AND id > least(%(burst_above)s, %(same_above)s) AND id <> %(item)s
            ORDER BY id DESC LIMIT %(scanned)s
        ) i
    ) recent (burst, same)
    WHERE u.id = %(sender)s
"""
WORDS = "SELECT id, text, whole FROM moderation_wordrule WHERE is_enabled"
VERSION = "SELECT version FROM moderation_wordlistversion"
BEFORE = f"""
    SELECT i.title, i.content, i.media FROM items_item i
    WHERE i.id = %(item)s AND i.status = 'published' AND {for_others("i")}
"""


class Reason(NamedTuple):
    """A code for programs, and words for people."""

    code: str
    words: str

    def __str__(self) -> str:
        return f"{self.code}: {self.words}"


class WordList(NamedTuple):
    """One version's enabled rules, compiled."""

    version: UUID | None
    matcher: Matcher
    texts: dict[int, str]


_list: WordList | None = None


def word_list(version: UUID | None) -> WordList:
    """The rules of `version` or later."""
    global _list
    current = _list
    if current is None or current.version != version:
        began = time.perf_counter()
        rows = fetch(WORDS)
        matcher = Matcher(Word(rule, fold(text), whole) for rule, text, whole in rows)
        current = _list = WordList(version, matcher, {rule: text for rule, text, _ in rows})
        logger.info("compiled %d word rules in %.0f ms", len(rows), (time.perf_counter() - began) * 1000)
    return current


def current_words() -> WordList:
    """The current rules."""
    return word_list(_word_list_version())


def _word_list_version() -> UUID | None:
    rows = fetch(VERSION)
    return rows[0][0] if rows else None


def item_text(item: Item) -> str:
    """All text of an item that people read."""
    warning, url = (item.content.get(name, "") for name in ("warning", "url"))
    answers = poll_options(item.content)
    parts = [
        item.title,
        warning,
        item.text,
        *answers,
        url,
        *sorted(medium.get("description", "") for medium in item.media),
    ]
    return "\n".join(part for part in parts if isinstance(part, str) and part)


def item_reasons(item: Item) -> list[Reason]:
    """Why a moderator must see `item` first. Empty for staff and white-listed senders, and for an unchanged published
    text.
    """
    is_new = item._state.adding
    if item.visibility == Visibility.SELF or item.is_private:
        return []
    before = None if is_new else _previous_version(item)
    if before is not None and (item_text(before), _captions(before)) == (item_text(item), _captions(item)):
        return []
    context = _fetch_context(item, is_new)
    if context is None or _is_exempt(context):
        return []
    text, unread = item_text(item), []
    try:
        text = "\n".join([text, *map(captioning.caption_text, item.media)])
    except StoreError:
        unread = [Reason("captions", "the captions could not be read")]
    found = _text_reasons(text, context, is_new) + unread
    if before is None:  # its pictures do not change
        found += [Reason("picture", held.note or str(held.rule)) for held in hashes.matching_rules(item)]
    return found


def links_held_until(author: User) -> datetime | None:
    """Until when the author's posts with links are held, or None."""
    until = author.date_joined + settings.MODERATION_LINK_AGE
    if until <= timezone.now():
        return None
    rows = fetch(SENDER, {"sender": author.pk, "new": settings.MODERATION_LINK_AGE})
    return until if rows and _holds_links(_Context._make((*rows[0], 0, 0))) else None


def submission_reasons(submission: Submission) -> list[Reason]:
    """Reasons to hold a text that is not an item."""
    author, now = submission.author, timezone.now()
    if author.pk is None:
        stranger = _Context(is_staff=False, kind=None, is_new=True, version=_word_list_version(), burst=0, same=0)
        return _text_reasons(submission.text, stranger, is_new=True)
    rows = fetch(SENDER, {"sender": author.pk, "new": settings.MODERATION_LINK_AGE})
    if not rows:
        return []
    since = now - settings.MODERATION_BURST_SPAN
    burst = sum(one.at > since for one in submission.earlier)
    same = sum(one.text == submission.text for one in submission.earlier) if len(submission.text) >= SHORTEST else 0
    return _text_reasons(submission.text, _Context._make((*rows[0], burst, same)), submission.is_new)


def _text_reasons(text: str, context: "_Context", is_new: bool) -> list[Reason]:
    if _is_exempt(context):
        return []
    found: list[Reason] = []
    if context.kind == SenderKind.BLACK:
        found.append(Reason("sender", "the sender is on the black list"))
    burst, same = _burst_limit(), _scaled_limit(settings.MODERATION_SAME_TEXT)
    if is_new and burst and context.burst >= burst:
        minutes = settings.MODERATION_BURST_SPAN // timedelta(minutes=1)
        found.append(Reason("rate", f"more than {burst} items in {minutes} minutes"))
    if same and context.same >= same:
        found.append(Reason("same", f"the same text more than {same} times in an hour"))
    if _holds_links(context) and links(text):
        days = settings.MODERATION_LINK_AGE // timedelta(days=1)
        found.append(Reason("link", f"a link from an account younger than {days} days"))
    words = word_list(context.version)
    if hits := sorted(words.texts[rule] for rule in words.matcher.matching_ids(fold(text))):
        named = ", ".join(hits[:NAMED]) + (", …" if len(hits) > NAMED else "")
        found.append(Reason("words", named))
    return found


def _is_exempt(context: "_Context") -> bool:
    return context.is_staff or context.kind == SenderKind.WHITE


def _holds_links(context: "_Context") -> bool:
    return bool(settings.MODERATION_LINK_AGE) and context.is_new and not _is_exempt(context)


def hit_rules(text: str) -> set[int]:
    """Ids of word rules in a text."""
    return current_words().matcher.matching_ids(fold(text))


def mark_hits(text: str, rule_texts: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Pieces of `text`, each with whether a rule matches."""
    matcher = Matcher(Word(number, fold(rule), whole) for number, (rule, whole) in enumerate(rule_texts))
    return marked(text, matcher)


def _scaled_limit(items: int) -> int:
    """A limit scaled like rates, for load tests. 0: no limit."""
    return max(1, int(items * settings.RATE_SCALE)) if items else 0


def _burst_limit() -> int:
    burst = _scaled_limit(settings.MODERATION_BURST)
    return burst if burst <= MOST else 0


class _Context(NamedTuple):
    """The sender, as a row of `CONTEXT`, or of `SENDER` with counts."""

    is_staff: bool
    kind: str | None
    is_new: bool
    version: UUID | None
    burst: int
    same: int


def _fetch_context(item: Item, is_new: bool) -> _Context | None:
    now = timezone.now()
    rows = fetch(
        CONTEXT,
        {
            "sender": item.sender_id,
            "item": 0 if is_new else item.pk,
            "text": item.text if len(item.text) >= SHORTEST else None,
            "new": settings.MODERATION_LINK_AGE,
            "burst_above": compose(now - settings.MODERATION_BURST_SPAN, 0),
            "same_above": compose(now - timedelta(hours=1), 0),
            "scanned": max(SCANNED, _burst_limit()),
        },
        into=_Context._make,
    )
    return rows[0] if rows else None


def _previous_version(item: Item) -> Item | None:
    rows = fetch(BEFORE, {"item": item.pk})
    if not rows:
        return None
    title, content, media = rows[0]
    return Item(title=title, content=content, media=media)


def _captions(item: Item) -> list[str]:
    """The file name endings of the item's captions. New captions get another ending."""
    return [medium.get("captions", "") for medium in item.media]
