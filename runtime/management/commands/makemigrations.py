"""`makemigrations` for what the database holds."""

from typing import Any

from django.core.management.commands.makemigrations import Command as MakeMigrationsCommand
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.state import ProjectState
from django.db.models import Field

UNSTORED = frozenset(
    {
        "blank",
        "choices",
        "editable",
        "error_messages",
        "help_text",
        "limit_choices_to",
        "related_name",
        "related_query_name",
        "validators",
        "verbose_name",
    }
)
"""Arguments of fields that PostgreSQL does not know. They change without a migration."""
NAMES = ("verbose_name", "verbose_name_plural")
"""Options of models, likewise."""


class Autodetector(MigrationAutodetector):
    """Finds changed columns. What only forms, pages and checks know of a field is in no migration."""

    def __init__(self, from_state: ProjectState, to_state: ProjectState, questioner: Any = None) -> None:
        for state in (from_state, to_state):
            for model in state.models.values():
                model.fields = {name: stored_field(field) for name, field in model.fields.items()}
                model.options = {name: value for name, value in model.options.items() if name not in NAMES}
        super().__init__(from_state, to_state, questioner)


def stored_field(field: "Field[Any, Any]") -> "Field[Any, Any]":
    """The field without the arguments `UNSTORED`."""
    _name, _path, args, kwargs = field.deconstruct()
    if "base_field" in kwargs:
        kwargs["base_field"] = stored_field(kwargs["base_field"])
    return type(field)(*args, **{key: value for key, value in kwargs.items() if key not in UNSTORED})


class Command(MakeMigrationsCommand):
    autodetector = Autodetector
