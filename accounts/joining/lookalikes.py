"""Names that look like others: the skeleton of a name is the same for all names that eyes take for each other.

Usernames are ASCII, so their skeleton is a function of PostgreSQL too (`feedsite_skeleton`, migration 0024), and an
index of users has it: no column to fill, and none that the version before could leave empty. Display names are of any
script; they go through the confusables of Unicode (UTS #39) first.

Names that looked alike before this rule stay.
"""

import re
import unicodedata
from functools import cache

from django.db.models import Func, TextField

_ALIKE = str.maketrans("I10O|", "llool")
"""Characters of one shape. A small i has a dot, so only the capital counts as l."""
_SEPARATORS = re.compile("[_-]+")


class Skeleton(Func):
    """The skeleton of a username, as PostgreSQL makes it: the expression of the index."""

    function = "feedsite_skeleton"
    arity = 1
    output_field = TextField()


def skeleton(username: str) -> str:
    """The form that two usernames share which look alike: 0 is o, 1 and I are l, rn is m, vv is w, and - is _, however
    often.
    """
    folded = username.translate(_ALIKE).lower().replace("rn", "m").replace("vv", "w")
    return _SEPARATORS.sub("_", folded)


def skeleton_of_words(text: str) -> str:
    """The skeleton of a name in any script: its letters as the Latin ones they look like, without spaces, marks and
    separators.
    """
    text = unicodedata.normalize("NFKD", text)
    letters = "".join(_latin(letter) for letter in text if unicodedata.category(letter)[0] in "LNP")
    return re.sub(r"[\W_]+", "", skeleton(letters))


@cache
def _latin(letter: str) -> str:
    """The ASCII letters that a character looks like; itself where it looks like none."""
    if letter.isascii():
        return letter
    from confusable_homoglyphs import confusables  # six megabytes, for the few who choose such a name

    found = confusables.confusables_data.get(letter, [])
    return next((each["c"] for each in found if each["c"].isascii()), letter)
