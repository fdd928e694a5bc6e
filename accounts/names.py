"""Search by parts of users' names, folded like texts. A column holds names that PostgreSQL (`feedsite_name`) does not
fold enough.

See docs/decisions.md: Own tokeniser for search.
"""

import unicodedata
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import Func, Model, TextField
from django.db.models.functions import Coalesce

from web.letters import folded


def grams(word: str, size: int = 3) -> list[str]:
    """All runs of `size` letters, or the whole shorter word."""
    return [word[at : at + size] for at in range(max(len(word) - size, 0) + 1)]


def grams_of(words: list[str]) -> list[str]:
    """Grams that a name with these words has. A single ASCII letter begins a word."""
    return [gram for word in words for gram in grams(word if len(word) > 1 or word > "~" else f" {word}")]


def folded_name(username: str, display_name: str) -> str | None:
    """The folded name, or None if PostgreSQL's folding is the same."""
    name = f"{username} {display_name}"
    found = folded(name)
    return found if found != unicodedata.normalize("NFKC", name).lower() else None


class FoldedName(TextField):  # type: ignore[type-arg]  # it cannot be subscripted at run time
    """A user's folded name, renewed by each save."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"null": True, "editable": False})

    def pre_save(self, model_instance: Model, add: bool) -> str | None:
        """Fold the current name."""
        user: Any = model_instance
        found = user.folded_name = folded_name(user.username, user.display_name)
        return found


class Name(Func):
    """Username and display name as PostgreSQL compares them."""

    function = "feedsite_name"
    output_field = TextField()

    def __init__(self) -> None:
        super().__init__("username", "display_name")


class ComparableName(Coalesce):
    """The folded name, else PostgreSQL's."""

    def __init__(self) -> None:
        super().__init__("folded_name", Name())


class Grams(Func):
    """A name's grams in PostgreSQL, as both indexes of names have them."""

    function = "feedsite_grams"
    output_field = ArrayField(TextField())
