"""How users are found by a part of their names: the letters that the index `user_names` knows (migration 0003).

See docs/decisions.md: Names are searched by grams of our own.
"""

import unicodedata

from django.contrib.postgres.fields import ArrayField
from django.db.models import Func, TextField


def grams(word: str, size: int = 3) -> list[str]:
    """The stretches of so many letters in `word`; all of it, if it has no more."""
    return [word[at : at + size] for at in range(max(len(word) - size, 0) + 1)]


def grams_of(words: list[str]) -> list[str]:
    """The stretches that a name with all these words has; a single ASCII letter is looked for where a name begins."""
    return [gram for word in words for gram in grams(word if len(word) > 1 or word > "~" else f" {word}")]


def words_of(text: str) -> list[str]:
    """The words of a name as it is compared: without regard to case and width."""
    return unicodedata.normalize("NFKC", text).lower().split()


class Name(Func):
    """The name that people know a user by, as PostgreSQL compares it."""

    function = "feedsite_name"
    output_field = TextField()

    def __init__(self) -> None:
        super().__init__("username", "display_name")


class Grams(Func):
    """The stretches of letters of a name: the expression of the index."""

    function = "feedsite_grams"
    output_field = ArrayField(TextField())

    def __init__(self) -> None:
        super().__init__(Name())
