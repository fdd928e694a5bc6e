"""How users are found by a part of their names: without regard to what search leaves out of texts (web.letters.folded).

PostgreSQL knows case and width only (`feedsite_name`). The names of which folding makes something else stand folded in
a column; the others need none. Two indexes know the letters, of the names as PostgreSQL compares them (`user_names`)
and of the folded ones (`user_folded_names`).

See docs/decisions.md: Own tokeniser for search.
"""

import unicodedata
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import Func, Model, TextField
from django.db.models.functions import Coalesce

from web.letters import folded


def grams(word: str, size: int = 3) -> list[str]:
    """The stretches of so many letters in `word`; all of it, if it has no more."""
    return [word[at : at + size] for at in range(max(len(word) - size, 0) + 1)]


def grams_of(words: list[str]) -> list[str]:
    """The stretches that a name with all these words has; a single ASCII letter is looked for where a name begins."""
    return [gram for word in words for gram in grams(word if len(word) > 1 or word > "~" else f" {word}")]


def folded_name(username: str, display_name: str) -> str | None:
    """The name that people know a user by, folded; None where PostgreSQL makes the same of it."""
    name = f"{username} {display_name}"
    found = folded(name)
    return found if found != unicodedata.normalize("NFKC", name).lower() else None


class FoldedName(TextField):  # type: ignore[type-arg]  # it cannot be subscripted at run time
    """The folded name of a user, which every save of the user renews."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"null": True, "editable": False})

    def pre_save(self, model_instance: Model, add: bool) -> str | None:
        """The name of now."""
        user: Any = model_instance
        found = user.folded_name = folded_name(user.username, user.display_name)
        return found


class Name(Func):
    """The name that people know a user by, as PostgreSQL compares it."""

    function = "feedsite_name"
    output_field = TextField()

    def __init__(self) -> None:
        super().__init__("username", "display_name")


class KnownAs(Coalesce):
    """The name that people know a user by, folded."""

    def __init__(self) -> None:
        super().__init__("folded_name", Name())


class Grams(Func):
    """The stretches of letters of a name: the expression of the indexes."""

    function = "feedsite_grams"
    output_field = ArrayField(TextField())
