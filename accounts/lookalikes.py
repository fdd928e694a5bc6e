"""Look-alike names have the same skeleton. PostgreSQL computes that of usernames too (`feedsite_skeleton`). Display
names go through Unicode's confusables (UTS #39) first.
"""

import importlib.util
import json
import re
import unicodedata
from functools import cache
from pathlib import Path

from django.db.models import Func, TextField

_ALIKE = str.maketrans("I10O|", "llool")
"""Characters of one shape. A small i has a dot, so only the capital counts as l."""
_SEPARATORS = re.compile("[_-]+")
_SHAPES = str.maketrans("i34578@$", "leastbas")
"""What else looks alike where any likeness counts."""
_ENDS = re.compile(r"^[^\w@$]+|[^\w@$]+$")
_INNER = re.compile(r"(?<=\w)!(?=\w)")
_NAMED = re.compile(r"(?:LATIN|NEGATIVE|REGIONAL) .*\b(?:LETTER|CAPITAL) ([A-Z])(?: WITH .+)?")
"""Unicode's names of letters with another style or a mark."""


class Skeleton(Func):
    """A username's skeleton in PostgreSQL, the index's expression."""

    function = "feedsite_skeleton"
    arity = 1
    output_field = TextField()


def skeleton(username: str) -> str:
    """The common form of look-alike usernames: 0 is o, 1 and I are l, rn is m, vv is w, any run of - and _ is _."""
    folded = username.translate(_ALIKE).lower().replace("rn", "m").replace("vv", "w")
    return _SEPARATORS.sub("_", folded)


def skeleton_of_words(text: str) -> str:
    """The skeleton of a name in any script: without separators and ornaments, and with digits as letters."""
    letters = "".join(map(_latin_lookalike, unicodedata.normalize("NFKD", text)))
    letters = _INNER.sub("i", _ENDS.sub("", letters))
    return re.sub(r"[\W_]+", "", skeleton(letters).translate(_SHAPES))


@cache
def _latin_lookalike(letter: str) -> str:
    if letter.isascii():
        return letter
    if named := _NAMED.fullmatch(unicodedata.name(letter, "")):
        return named[1].lower()
    if unicodedata.category(letter)[0] not in "LNP":
        return ""
    return ascii_lookalikes().get(letter, letter)


@cache
def ascii_lookalikes() -> dict[str, str]:
    """The characters that look like ASCII, with what they look like, by Unicode.

    The package's own functions would keep eight megabytes.
    """
    package = importlib.util.find_spec("confusable_homoglyphs")
    assert package is not None and package.origin is not None  # noqa: S101, PT018 (a dependency)
    found = json.loads(Path(package.origin).with_name("confusables.json").read_bytes())
    plain = {letter: [each["c"] for each in looks if each["c"].isascii()] for letter, looks in found.items()}
    return {letter: looks[0] for letter, looks in plain.items() if looks}
