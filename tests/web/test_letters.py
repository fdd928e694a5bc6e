import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from items.pages.reading import excerpt
from web.letters import CLUSTER, beginning, folded, folded_text, is_blank

FAMILY = "👨\u200d👩\u200d👧"
FLAGS = "🇩🇪🇫🇷"


@pytest.mark.parametrize(
    ("text", "most", "begun"),
    [
        ("abcdef", 3, "abc"),
        ("abc", 3, "abc"),
        (f"ab{FAMILY}c", 4, "ab"),
        (f"ab{FAMILY}c", 7, f"ab{FAMILY}"),
        (FLAGS, 2, "🇩🇪"),
        (FLAGS, 3, "🇩🇪"),
        ("🇩🇪🇫", 2, "🇩🇪"),
        ("e\u0301e\u0301", 3, "e\u0301"),
        ("❤\ufe0f❤\ufe0f", 1, ""),
        ("กำกำ", 3, "กำ"),
        ("👍🏽👍🏽", 3, "👍🏽"),
        ("1\ufe0f\u20e3a", 2, ""),
    ],
)
def test_beginnings_hold_whole_characters(text: str, most: int, begun: str) -> None:
    assert beginning(text, most) == begun


def test_an_excerpt_ends_before_a_character() -> None:
    assert excerpt(f"ab{FAMILY}cd", 5) == "ab…"
    assert excerpt("abcdef", 5) == "abcd…"
    assert excerpt("abcde", 5) == "abcde"


@given(st.lists(st.sampled_from([*"ab🇩🇪👨👩", FAMILY, "\u200d", "\u0301", "\ufe0f", "क्", "ष", "한"])).map("".join))
def test_clusters_are_the_text_and_flags_go_in_pairs(text: str) -> None:
    assert "".join(CLUSTER.findall(text)) == text
    for most in range(len(text) + 1):
        assert text.startswith(beginning(text, most))
    assert CLUSTER.findall("🇩" * 5) == ["🇩🇩", "🇩🇩", "🇩"]


def test_folded_letters_stay_as_they_are() -> None:
    for number in range(0x30000):
        if unicodedata.category(letter := chr(number)) != "Cs":
            assert folded(folded(letter)) == folded(letter), hex(number)
            assert folded_text(folded_text(letter)) == folded_text(letter), hex(number)


def test_blanks() -> None:
    assert all(map(is_blank, ["", " ", "\u200b", "\u3164\u2800", "\u00ad\t\u202e"]))
    assert not any(map(is_blank, ["a", "\u0600", "🎉", "\u200b."]))
