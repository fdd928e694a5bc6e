"""Hashtags: their characters, and the one spelling of each."""

import unicodedata

from web.letters import LETTER, compiled
from web.refusals import MissingError

LENGTH = 100
"""Characters."""
# Allowed between letters: joiners of Persian and Indian scripts, middle dots, geresh and gershayim, and the quotation
# marks that Hebrew keyboards type for the last two.
_JOINERS = r"\p{Join_Control}"
_HEBREW_MARK = r"(?<=\p{Hebrew})['\"](?=\p{Hebrew})"
_MIDDLE = f"(?:[\u00b7\u0387\u2027\u30fb\uff65\u05f3\u05f4]|{_HEBREW_MARK})"
_GERESH = compiled(_HEBREW_MARK)
TAG = compiled(f"[{LETTER}--\\p{{M}}]{LETTER}*+(?:(?:{_JOINERS}++|{_MIDDLE}){LETTER}++)*+")
"""A hashtag in a text, after its #."""
# Visible joiners follow letters of scripts that join, or a sign that removes the vowel.
_UNSEEN = compiled(
    r"(?<![\p{scx=Arabic}\p{scx=Syriac}\p{scx=Mongolian}\p{InSC=Virama}\p{InSC=Pure_Killer}])\p{Join_Control}"
    r"|[\p{Default_Ignorable_Code_Point}--\p{Join_Control}]"
)


def canonical_tag(tag: str) -> str | None:
    """The one spelling of a hashtag, which is given without #. None if it is no hashtag."""
    if not tag or len(tag) > LENGTH:
        return None
    if tag.isascii():
        tag = tag.lower()
    else:
        # Folding and normalisation undo each other for a few letters. Two rounds settle it.
        for _ in range(2):
            tag = unicodedata.normalize("NFKC", _UNSEEN.sub("", tag)).casefold()
        tag = unicodedata.normalize("NFKC", tag).replace("\u2027", "\u00b7")
        tag = _GERESH.sub(lambda mark: "\u05f3" if mark[0] == "'" else "\u05f4", tag)
    if len(tag) > LENGTH or not TAG.fullmatch(tag) or not any(map(str.isalpha, tag)):
        return None
    return tag


def known_tag(tag: str) -> str:
    """Like `canonical_tag`. Raises MissingError."""
    canonical = canonical_tag(tag)
    if canonical is None:
        raise MissingError
    return canonical
