"""Characters by Unicode properties, as parts of patterns."""

import re
import unicodedata
from functools import lru_cache

import regex

MARKS = 30
"""The most combining marks to keep on one letter."""
INVISIBLE = r"[\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800\U0001D159[\p{Cf}--\p{Prepended_Concatenation_Mark}]]"
"""Characters that draw nothing. Some shape their neighbours (emoji, Persian)."""
SHAPING = r"[\p{Join_Control}\p{Variation_Selector}[\p{Emoji_Component}&&\p{Default_Ignorable_Code_Point}]]"
"""Invisible characters that change how their neighbours look."""
UNSPACED = (
    r"[[\p{L}\p{M}\p{N}]&&[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Bopomofo}]"
    r"--[\p{scx=Latin}\p{Default_Ignorable_Code_Point}]]"
)
"""Chinese, Japanese and Korean letters, which may touch a link before them or a mention after them."""
COMPLEX = r"[[\p{L}\p{M}\p{N}]&&\p{Line_Break=SA}]"
"""Letters of Thai, Lao, Khmer, Burmese and others, where only a dictionary finds the end of a word."""
LETTER = r"[\p{L}\p{M}\p{N}_]"
"""Characters of words. Vowel signs are marks; without them Thai and Hindi words fall apart."""
APOSTROPHES = "'\u2018\u2019\u201b\u02bb\u02bc\u2032\uff07`\u00b4"


def compiled(pattern: str, flags: int = 0) -> "regex.Pattern[str]":
    """A compiled pattern that may use set operations."""
    return regex.compile(pattern, regex.V1 | flags)


# Flags are spelled out: `\X` would count back to the first flag of a row, in quadratic time.
CLUSTER = compiled(r"\p{RI}{2}[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*+|\X")
"""A grapheme cluster: one character for readers."""
_BLANK = compiled(f"{INVISIBLE}*+")
_IGNORABLE = compiled(r"\p{Default_Ignorable_Code_Point}")
# Accents and points that readers leave out. Vowel signs of other scripts stay.
_OPTIONAL = compiled(r"(?<=[\p{Latin}\p{Greek}\p{Hebrew}\p{Arabic}\p{Syriac}])\p{Mn}++")
_STRESS = compiled(r"(?<=\p{Cyrillic})[\p{Mn}&&\p{sc=Inherited}]++")
_TATWEEL = "\u0640"  # lengthens Arabic words
_SAME = str.maketrans(
    dict.fromkeys(APOSTROPHES + "\u05f3", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u05f4", '"')
    | dict.fromkeys("\u2010\u2011", "-")
    | {"ё": "е", "ı": "i", "æ": "ae", "œ": "oe"}  # noqa: RUF001 (Cyrillic is meant)
    # Letters that Arabic and Persian keyboards or habits choose among: alef wasla, alef maksura, ya, kaf, ta marbuta.
    | {"\u0671": "\u0627", "\u0649": "\u064a", "\u06cc": "\u064a", "\u06a9": "\u0643", "\u0629": "\u0647"}
    | {chr(zero + digit): str(digit) for zero in (0x660, 0x6F0) for digit in range(10)}
    # Katakana as hiragana.
    | {chr(letter): chr(letter - 0x60) for letter in (*range(0x30A1, 0x30F7), 0x30FD, 0x30FE)}
)
_HAS_MORE = compiled(
    rf"[\p{{Greek}}\p{{Cyrillic}}\p{{Hebrew}}\p{{Arabic}}\p{{Syriac}}{_TATWEEL}"
    rf"[\p{{Latin}}--\p{{ASCII}}]\p{{sc=Inherited}}{re.escape(''.join(map(chr, _SAME)))}]"
)


def is_blank(text: str) -> bool:
    """Whether nothing of the text is visible."""
    return _BLANK.fullmatch(text) is not None


def beginning(text: str, most: int) -> str:
    """The beginning of a text: at most `most` characters, splitting no grapheme cluster."""
    if len(text) <= most:
        return text
    part = text[: most + 1]  # a border depends on the next character
    if part.isascii():
        return part[:most]
    end = 0
    for cluster in CLUSTER.finditer(part):
        if cluster.end() > most:
            break
        end = cluster.end()
    return part[:end]


def stream_safe(text: str) -> str:
    """The text with at most `MARKS` combining marks in a row.

    Normalisation sorts them in quadratic time (Unicode Standard Annex #15, Stream-Safe Text Format).
    """
    if len(text) <= MARKS:
        return text
    kept: list[str] = []
    marks = 0
    for letter, combining in zip(text, map(unicodedata.combining, text), strict=True):
        marks = marks + 1 if combining else 0
        if marks <= MARKS:
            kept.append(letter)
    return text if len(kept) == len(text) else "".join(kept)


def folded(text: str) -> str:
    """The text for comparisons of names, which people type without marks: as `folded_text`, and ñ is n."""
    return folded_text(text).replace("ñ", "n")


def folded_text(text: str) -> str:
    """The text for comparisons in filters and search.

    Without case, width, invisible characters, accents of Latin and Greek letters except the tilde of ñ, points of
    Hebrew and Arabic, strokes (ł is l) and the dots of ё. Katakana are hiragana, and variants of Arabic letters and
    digits are one. With one apostrophe, one quotation mark and one hyphen.
    """
    if text.isascii():
        return text.lower().replace("`", "'")
    text = stream_safe(_IGNORABLE.sub("", text))
    for _ in range(2):  # folding and normalisation undo each other for a few letters
        text = unicodedata.normalize("NFKC", text).casefold()
    if not _HAS_MORE.search(text):
        return unicodedata.normalize("NFKC", text)
    text = unicodedata.normalize("NFD", text).replace(_TATWEEL, "").replace("n\u0303", "ñ")  # a letter of its own
    text = _OPTIONAL.sub("", text)
    text = _STRESS.sub("", unicodedata.normalize("NFC", text)).translate(_SAME)
    return _STROKED.sub(lambda letter: _without_stroke(letter[0]), text)


_STROKED = compiled(r"[\p{Latin}--[\p{ASCII}ñ]]")


@lru_cache(4_096)
def _without_stroke(letter: str) -> str:
    """The Latin letter without its stroke, or the letter itself if it has none."""
    name, _, stroke = unicodedata.name(letter, "").partition(" WITH ")
    if not stroke:
        return letter
    try:
        return unicodedata.lookup(name).casefold()
    except KeyError:
        return letter
