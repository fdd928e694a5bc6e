# ruff: noqa: RUF001 - letters that look alike are meant
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from items.filters.matching import Matcher, TextPosition, Word, fold, marked

WIDE = "\uff33\uff30\uff21\uff2d"


def found(text: str, *words: str, whole: bool = False) -> set[str]:
    matcher = Matcher(Word(number, fold(word), whole) for number, word in enumerate(words))
    return {words[number] for number in matcher.matching_ids(fold(text))}


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("SPAM", "spam"),
        (f"{WIDE}\uff01", "spam!"),
        ("s\u200bp\u200ca\u2060m\ufeff", "spam"),
        ("sp\u00adam", "spam"),
        ("𝐒𝓹𝕒𝚖", "spam"),
        ("Straße STRASSE", "strasse strasse"),
        ("cafe\u0301 caf\u00e9", "cafe cafe"),
        ("cafe\u200b\u0301", "cafe"),
        ("Año AN\u0303O ñ\u0301 g\u0303", "año año ñ g"),
        ("a \t\n　b ", "a b"),
        ("ｶﾞ", "が"),
        ("法輪\u200b功", "法輪功"),
        ("\u200b\u3164", ""),
        ("don’t donʼt don＇t", "don't don't don't"),
        ("שָׁלוֹם מَرْحَبًا مرحـبا", "שלום מرحبا مرحبا"),
        ("Ἀθήνα ΆΓΙΟΣ", "αθηνα αγιοσ"),
        ("Ёлка й за\u0301мок", "елка й замок"),
        ("ŁÓDŹ ø đ Iıİi", "lodz o d iiii"),
        ("हिन्दी น้ำ", "हिन्दी น้ํา"),
    ],
)
def test_compared_characters(text: str, folded: str) -> None:
    assert fold(text) == folded
    assert fold(folded) == folded


@pytest.mark.parametrize(
    ("text", "word", "anywhere", "whole"),
    [
        ("buy SPAM, now", "spam", True, True),
        ("spammers", "spam", True, False),
        ("antispam", "spam", True, False),
        ("spam2", "spam", True, False),
        ("spam_", "spam", True, False),
        ("这是spam内容", "spam", True, True),
        ("今天买彩票吧", "彩票", True, True),
        ("彩 票", "彩票", False, False),
        ("彩\u200b票", "彩票", True, True),
        ("free   money", "free money", True, True),
        ("free\nmoney", "free money", True, True),
        ("freemoney", "free money", False, False),
        ("c++", "c++", True, True),
        ("abc++", "c++", True, False),
        ("naïve", "na", True, False),
        ("un café", "cafe", True, True),
        ("un año", "ano", False, False),
        ("un AN\u0303O", "año", True, True),
        ("ไทยspamไทย", "spam", True, True),
        ("한국spam", "spam", True, False),
        ("", "spam", False, False),
        ("don’t", "don't", True, True),
        ("don't", "don’t", True, True),
        ("j’ai faim", "AI", True, False),
        ("j'ai faim", "AI", True, False),
        ("AI’s end, 'AI'", "AI", True, True),
        ("don’t", "don", True, False),
        ("हिन्दी", "हिन्द", True, False),
        ("ภาษาไทยไม่มีวรรค", "ไทย", True, True),
    ],
)
def test_anywhere_and_whole(text: str, word: str, anywhere: bool, whole: bool) -> None:
    assert bool(found(text, word)) == anywhere
    assert bool(found(text, word, whole=True)) == whole


def test_a_whole_word_is_found_behind_a_part_of_one() -> None:
    assert found("spammers sell spam", "spam", whole=True) == {"spam"}


def test_nothing_is_found_without_words() -> None:
    assert list(Matcher([]).places("words")) == []
    assert list(Matcher([Word(1, "", False)]).places("words")) == []


letters = st.text("ab票 ", max_size=12)


@pytest.mark.slow
@given(st.lists(st.text("ab票", min_size=1, max_size=4), max_size=6), letters)
def test_every_place_is_found(words: list[str], text: str) -> None:
    matcher = Matcher(Word(number, word, False) for number, word in enumerate(words))
    expected = {
        TextPosition(start, start + len(word), number)
        for number, word in enumerate(words)
        for start in range(len(text))
        if text.startswith(word, start)
    }
    places = list(matcher.places(text))
    assert len(places) == len(expected)
    assert set(places) == expected


@pytest.mark.slow
@given(st.lists(st.tuples(st.text("ab 票", min_size=1, max_size=4), st.booleans()), max_size=6), st.text("ab 票"))
def test_found_words_stand_somewhere(words: list[tuple[str, bool]], text: str) -> None:
    """Also with found words skipped. A whole word has no letter of its kind beside it."""

    def borders(start: int, end: int) -> bool:
        return not any(text[max(0, at - 1) : at + 1] in ("aa", "ab", "ba", "bb") for at in (start, end))

    matcher = Matcher(Word(number, word, whole) for number, (word, whole) in enumerate(words))
    expected = {
        TextPosition(start, start + len(word), number)
        for number, (word, whole) in enumerate(words)
        for start in range(len(text))
        if text.startswith(word, start) and (not whole or borders(start, start + len(word)))
    }
    assert set(matcher.places(text)) == expected
    assert matcher.matching_ids(f"{text} " * 20) >= matcher.matching_ids(text) == {place.word for place in expected}


@pytest.mark.parametrize(
    ("text", "hits"),
    [
        (f"Buy {WIDE}\u200b now, sp\u200bam!", [f"{WIDE}\u200b", "sp\u200bam"]),
        ("今天买彩票吧", ["彩票"]),
        ("cafe\u0301 x", ["cafe\u0301"]),
        ("un an\u0303o", ["an\u0303o"]),
        ("free \n  money.", ["free \n  money"]),
        ("straße", ["straße"]),
        ("nothing", []),
        ("", []),
    ],
)
def test_hits_are_marked_as_they_were_written(text: str, hits: list[str]) -> None:
    words = ["spam", "彩票", "café", "año", "free money", "strasse"]
    matcher = Matcher(Word(number, fold(word), True) for number, word in enumerate(words))
    pieces = marked(text, matcher)
    assert "".join(piece for piece, _ in pieces) == text
    assert [piece for piece, hit in pieces if hit] == hits


@pytest.mark.slow
@given(st.text(max_size=40), st.text(max_size=4))
def test_marking_loses_nothing(text: str, word: str) -> None:
    pieces = marked(text, Matcher([Word(1, fold(word), False)]))
    assert "".join(piece for piece, _ in pieces) == text


def test_thousands_of_words_cost_what_one_costs() -> None:
    text = fold("the quick brown fox 今天天气很好 " * 20)

    def seconds(count: int) -> float:
        matcher = Matcher(Word(number, f"w{number}天{number}", False) for number in range(count))
        best = 1.0
        for _ in range(20):
            began = time.perf_counter()
            matcher.matching_ids(text)
            best = min(best, time.perf_counter() - began)
        return best

    assert seconds(5_000) < 10 * seconds(1) + 1e-4
