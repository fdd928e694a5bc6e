"""Hashtags: their characters, and the one spelling of each."""

import unicodedata

from web.letters import LETTER, compiled

LENGTH = 100
"""Characters."""
# Allowed between the letters: joiners of Persian and Indian scripts, middle dots, geresh and gershayim. Hebrew
# keyboards type quotation marks for the last two.
_JOINERS = r"\p{Join_Control}"
_HEBREW_MARK = r"(?<=\p{Hebrew})['\"](?=\p{Hebrew})"
_MIDDLE = f"(?:[\u00b7\u0387\u2027\u30fb\uff65\u05f3\u05f4]|{_HEBREW_MARK})"
_GERESH = compiled(_HEBREW_MARK)
TAG = compiled(f"[{LETTER}--\\p{{M}}]{LETTER}*+(?:(?:{_JOINERS}++|{_MIDDLE}){LETTER}++)*+")
"""A hashtag in a text, after its #."""
# Visible joiners: between letters of scripts that join, and after a sign that removes the vowel. The others are unseen.
_UNSEEN = compiled(
    r"(?<![\p{scx=Arabic}\p{scx=Syriac}\p{scx=Mongolian}\p{InSC=Virama}\p{InSC=Pure_Killer}])\p{Join_Control}"
    r"|[\p{Default_Ignorable_Code_Point}--\p{Join_Control}]"
)


def canonical_tag(tag: str) -> str | None:
    """The one spelling of a tag without #, ignoring case, width and invisible characters. None if it is no tag."""
    if not tag or len(tag) > LENGTH:
        return None
    if tag.isascii():
        tag = tag.lower()
    else:
        # Case folding and normalisation undo each other for a few letters. Two rounds settle it.
        for _ in range(2):
            tag = unicodedata.normalize("NFKC", _UNSEEN.sub("", tag)).casefold()
        tag = unicodedata.normalize("NFKC", tag).replace("\u2027", "\u00b7")
        tag = _GERESH.sub(lambda mark: "\u05f3" if mark[0] == "'" else "\u05f4", tag)
    if len(tag) > LENGTH or not TAG.fullmatch(tag) or not any(map(str.isalpha, tag)):
        return None
    return tag
