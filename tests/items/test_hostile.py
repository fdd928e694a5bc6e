"""Functions that take members' text must be linear and fast. A new function must be measured, or listed in OTHERS."""

import importlib
import inspect
import json
import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import django.template
import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from accounts.avatars import drawn_url
from items import actions, text
from items.filters.filters import FilterRule, Filters, folded
from items.filters.matching import Matcher, Word, fold, marked
from items.models import FilterAction
from items.pages import reading
from items.search import words
from items.search.hits import hits
from items.search.query import QUERY_LENGTH, parse
from items.text import TEXT_LENGTH
from moderation import rules
from tests.support.effort import EVERYTHING, some
from tests.support.factories import UserFactory
from tests.support.patience import BUSY, cpu, untraced
from web import hashtags, letters
from web.strict_json import check_text, parse_json

PIECES = [
    "@", "@a", "的@a", "@a ", "#", "#a", "#a ", "#1", "#的", "#的#", "https://", "https://a.b ", "https://a.b/(",
    "www.", "www.a.b ", "/www.", "xwww.", "https://例.中国", "a.", "a b ", "a", "的", "的a", "한", "\u0301",
    "\u1100\u1161",
    "a\u0301", "\u0345\u0301", "\u0323\u0301", "\ufdfa", "ß", "İ", "\u200d", "\u3164", "(", "]", "“", '"',
    "🇩", "👨\u200d", "a\u0e31", "ที่", "क्\u200d", "#a·", "#a\u200c", "@a/", "@a@b.", "a'", "'s", "ł", "א\"", "https://a.b/🎉",
    "'", " ", "\n", "\t \n", "&",
    "<", ">", "&<>", "\\", "%", "{{", "{%", "\U0001f600", "\u202e", "-", "_",
]  # fmt: skip
"""Hostile texts repeat these."""
SECONDS = 0.020
"""Limit for the longest publishable text."""
GROWTH = 9
"""Most growth for a fourfold text. Linear time gives 4, quadratic 16."""

QUERIES = ["a", "的", "a b", '"a a a"', "的" * QUERY_LENGTH, " ".join(map(chr, range(0x4E00, 0x4E64)))]
MATCHER = Matcher(Word(number, word, False) for number, word in enumerate(["a", "的", "的的", "\u0301", "spam"]))
FILTERED = Filters(
    FilterRule(0, number, word, True, FilterAction.WARN, None) for number, word in enumerate(["a", "的的", "spam"])
)


def hits_in(written: str, query: str) -> object:
    return hits(written[: reading.EXCERPT_LETTERS], parse(query))


def linked(written: str, query: str = "") -> object:
    return reading.linked(written, lambda _name: True, parse(query) if query else None, is_folded=bool(query))


COSTS: dict[str, list[Callable[[str], object]]] = {
    "items.text.check_content": [lambda written: text.check_content("text", {"text": f"{written}a"[-TEXT_LENGTH:]})],
    "items.text.counted_length": [text.counted_length],
    "items.text.spans": [lambda written: list(text.spans(written))],
    "items.text.mentions": [text.mentions],
    "items.text.hashtags": [text.hashtags],
    "items.text.links": [text.links],
    "web.hashtags.canonical_tag": [hashtags.canonical_tag],
    "items.search.words.runs": [lambda written: list(words.runs(written))],
    "web.letters.stream_safe": [letters.stream_safe],
    "web.letters.folded": [letters.folded],
    "web.letters.folded_text": [letters.folded_text],
    "web.letters.is_blank": [letters.is_blank],
    "web.letters.beginning": [lambda written: letters.beginning(written, len(written) - 1)],
    "items.search.words.document": [lambda written: words.document("", written)],
    "items.search.hits.hits": [partial(hits_in, query=query) for query in QUERIES],
    "items.search.query.parse": [lambda written: parse(written[:QUERY_LENGTH]).tsquery],
    "items.pages.reading.is_long": [reading.is_long],
    "items.pages.reading.excerpt": [lambda written: reading.excerpt(written, 240)],
    "items.pages.reading.domain": [reading.domain],
    "items.pages.reading.short_link": [reading.short_link],
    "items.pages.reading.linked": [linked, *(partial(linked, query=query) for query in QUERIES)],
    "accounts.avatars.drawn_url": [lambda written: drawn_url(written, written)],
    "items.filters.matching.fold": [fold],
    "items.filters.filters.Filters.found": [lambda written: FILTERED.found(folded([written]), timezone.now())],
    "items.filters.matching.marked": [lambda written: marked(written, MATCHER)],
    "moderation.rules.mark_hits": [lambda written: rules.mark_hits(written, [("a", False), ("的", True)])],
    "web.strict_json.check_text": [lambda written: check_text([written])],
    "web.strict_json.parse_json": [lambda written: parse_json(json.dumps({"content": {"text": written}}).encode())],
}
OTHERS = {
    "web.letters.compiled": "a pattern of ours",
    "web.hashtags.known_tag": "canonical_tag, which is measured",
    "items.text.check_poll": "options of at most 80 characters, each looked at once",
    "notifications.sentences.words_of": "a kind of ours",
    "notifications.sentences.act_sentence": "a kind of ours and a bounded name",
    "accounts.about.words.headed_paragraphs": "the site's own words, which superusers write",
    "accounts.about.words.paragraphs": "the site's own words, which superusers write",
    "moderation.rules.hit_rules": "folds, and asks the matcher: both are measured",
    "web.icons.icon": "the names of our icons",
    "web.languages.is_code": "its length is looked at first",
    "web.languages.isolate": "a bounded name or excerpt, in which one letter of a class is searched",
    "web.languages.tag_of": "the codes of our languages",
    "items.pages.pictures.average_colour": "a blurhash of ours, of which four digits are read",
    "accounts.people.profile_address": "a username",
    "accounts.people.isolated": "a bounded name, which is escaped, once",
    "accounts.people.avatar": "a bounded name; its address is measured (accounts.avatars.drawn_url)",
    "accounts.people.name_of": "an address of ours; the name is escaped, once",
}
"""Their strings are bounded or not from members."""
MODULES = [
    "items.text",
    "items.search.words",
    "items.search.hits",
    "items.search.query",
    "items.filters.matching",
    "web.hashtags",
    "web.letters",
    "moderation.rules",
    "accounts.about.words",
    "accounts.people",
    "items.pages.cards",
    "items.pages.pictures",
    "items.pages.reading",
    "live.clock",
    "notifications.sentences",
    "web.icons",
    "web.languages",
]
FILTERS = {
    "add", "admin_urlname", "admin_urlquote", "capfirst", "date", "default", "default_if_none", "divisibleby",
    "filesizeformat", "floatformat", "intcomma", "iriencode", "join", "length", "linebreaksbr", "lower", "map",
    "pluralize", "slice", "stringformat", "timesince", "truncatechars", "truncatewords", "unlocalize",
    "urlencode", "yesno",
}  # fmt: skip
"""Django filters allowed in templates. Each reads a member's text once."""


def takes_text(function: Any) -> bool:
    return any(parameter.annotation is str for parameter in inspect.signature(function).parameters.values())


def test_every_function_of_these_modules_is_measured() -> None:
    found = {
        f"{name}.{function.__name__}"
        for name in MODULES
        for _, function in inspect.getmembers(importlib.import_module(name), inspect.isfunction)
        if function.__module__ == name and not function.__name__.startswith("_") and takes_text(function)
    }
    assert found - COSTS.keys() - OTHERS.keys() == set()


def test_templates_use_no_filter_that_is_not_measured() -> None:
    used: set[str] = set()
    for file in (settings.BASE_DIR / "templates").rglob("*.html"):
        for tag in re.findall(r"{[{%].*?[%}]}", file.read_text()):
            used |= set(re.findall(r"\|(\w+)", tag))
    pages, admin = django.template.engines.all()
    ours = {name for name, made in pages.env.filters.items() if not made.__module__.startswith(("django.", "jinja2."))}
    for library in admin.engine.template_libraries.values():
        ours |= {name for name, made in library.filters.items() if not made.__module__.startswith("django.")}
    assert used - FILTERS - ours == set()
    assert {"excerpt", "date"} <= used


@pytest.mark.long
@pytest.mark.parametrize(("name", "number"), [(name, number) for name in COSTS for number in range(len(COSTS[name]))])
def test_hostile_texts_cost_in_proportion_to_their_length(name: str, number: int) -> None:
    function = COSTS[name][number]
    for piece in PIECES if EVERYTHING else PIECES[number % 16 :: 16]:
        written = (piece * TEXT_LENGTH)[:TEXT_LENGTH]
        cost = cpu(partial(function, written), SECONDS)
        assert cost < BUSY * SECONDS, piece
        # No need to compare if four times the length stays below the limit.
        longer = cpu(partial(function, (piece * TEXT_LENGTH * 4)[: TEXT_LENGTH * 4]), SECONDS)
        assert longer < max(GROWTH * cost, SECONDS), piece


PAGE_SECONDS = 1.0
"""CPU for 20 hostile posts. Ordinary ones take 20 ms."""
PAGE_BYTES = 300_000


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("piece", some(2, ["的@a", "&", "https://a.b ", "#的#", "a b "]))
def test_pages_of_hostile_posts(client: Client, piece: str) -> None:
    sender = UserFactory.create(username="mallory")
    for number in range(20):
        written = f"{number} a 的 {piece * TEXT_LENGTH}"[:TEXT_LENGTH]
        actions.publish(sender=sender, content={"text": written})
    client.get("/search", {"q": "nothing"})  # loads templates and routes
    for address, query in (("/@mallory", ""), ("/search", "a"), ("/search", "的"), ("/search", "a " * 99)):
        begun = time.thread_time()
        with untraced():
            response = client.get(address, {"q": query} if query else {})
        took = time.thread_time() - begun
        assert response.content.count(b"<article") == 20
        assert took < PAGE_SECONDS, address
        assert len(response.content) < PAGE_BYTES, address
