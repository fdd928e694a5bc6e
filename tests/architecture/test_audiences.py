"""Every table keyed by visibility has all of them, so a new one is never forgotten.

See docs/decisions.md: Who may see what is SQL text in one place.
"""

import re
from pathlib import Path

import pytest
from django.conf import settings

from clientapi.entities import SHOWN_AS
from clientapi.rest.statuses import WRITTEN_AS
from items.models import Visibility
from items.pages.cards import CardWords
from items.pages.forms import AUDIENCES
from timeline.pull import READ_FOR, STREAMS

TEMPLATES = Path(settings.BASE_DIR) / "templates" / "items"
NOT_WRITTEN_BY_APPS = {Visibility.MUTUALS, Visibility.SELF}
"""Mastodon has no word for them."""
IN_NO_STREAM = {Visibility.MENTIONED}
SENTENCES = re.compile(r'"([a-z]+)": (?:_\(|for_all)')


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("items.pages.forms.AUDIENCES", [value for value, _ in AUDIENCES]),
        ("clientapi.entities.SHOWN_AS", list(SHOWN_AS)),
        ("clientapi.rest.statuses.WRITTEN_AS", [*WRITTEN_AS.values(), *NOT_WRITTEN_BY_APPS]),
        ("templates/items/_audience.html", SENTENCES.findall((TEMPLATES / "_audience.html").read_text())),
        # A public item has no mark. It is in the followers' stream.
        (
            "items.pages.cards.CardWords",
            ["public", *(circle for circle in CardWords._fields if circle in Visibility.values)],
        ),
        ("timeline.pull.STREAMS", ["public", *IN_NO_STREAM, *(circle for circle in STREAMS if circle != "posts")]),
    ],
)
def test_each_visibility_is_named_once(name: str, named: list[str]) -> None:
    assert sorted(named) == sorted(Visibility.values), name


def test_each_stream_has_its_senders() -> None:
    assert READ_FOR.keys() == STREAMS.keys()
