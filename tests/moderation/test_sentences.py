"""The sentences of moderation: why something is held, in the reader's language."""

import pytest
from django.utils import translation

from moderation.sentences import explained


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("rate: 20 items in 10 minutes", "more than 20 items in 10 minutes"),
        ("same: 3 times in an hour", "the same text more than 3 times in an hour"),
        ("link: account younger than 2 days", "a link from an account younger than 2 days"),
        ("reports: 5 readers", "reports from 5 readers"),
        ("rate: of a newer version", "rate: of a newer version"),
        ("unheard of", "unheard of"),
    ],
)
def test_reasons_with_numbers(reason: str, said: str) -> None:
    assert explained(reason) == said


def test_reasons_are_in_the_readers_language() -> None:
    with translation.override("zh-hans"):
        assert "20" in explained("rate: 20 items in 10 minutes")
        assert "items" not in explained("rate: 20 items in 10 minutes")
