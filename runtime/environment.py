"""Reads and checks the environment before anything starts. Reports all wrong variables at once.

Values that may hold a secret are never shown.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, get_args, get_origin

from dotenv.parser import parse_stream
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from runtime.options import BASE_DIR, INTERNAL, RULE, VARIABLES, Options

PREFIX = "FEEDSITE_"
SHOWN = 60
"""Characters of a wrong value in a message."""


class OptionsError(RuntimeError):
    """The environment is wrong. `lines` has a sentence for each variable."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = tuple(lines)

    def exit(self) -> NoReturn:
        """Print every wrong variable, and exit."""
        print("\n".join(f"feedsite: {line}" for line in self.lines), file=sys.stderr)
        sys.exit(2)


def read(folder: Path = BASE_DIR) -> Options:
    """The settings of the environment. FEEDSITE_ENV_FILE or `.env` adds unset variables. Raises OptionsError."""
    named = os.environ.get("FEEDSITE_ENV_FILE", "").strip()
    path = Path(named) if named else folder / ".env"
    if named or path.exists():
        for name, value in read_file(path).items():
            os.environ.setdefault(name, value)
    options = validated_options()
    if options.small:  # the keeper runs without packages, and reads only these two
        os.environ |= {"FEEDSITE_SMALL": "1", "FEEDSITE_FEEDS_MEMORY": options.feeds_memory}
    return options


def read_file(path: Path) -> dict[str, str]:
    """The variables of a file. Raises OptionsError."""
    try:
        with path.open(encoding="utf-8") as file:
            lines = list(parse_stream(file))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise OptionsError([f"The settings file {path} cannot be read: {reason}."]) from error
    # Name only the number of a line: it may hold a secret.
    wrong = [each.original.line for each in lines if each.error or (each.key and each.value is None)]
    if wrong:
        raise OptionsError([f"Line {number} of {path} is not NAME=value." for number in wrong])
    return {each.key: each.value or "" for each in lines if each.key}


def validated_options() -> Options:
    """The settings from the environment. Raises OptionsError."""
    try:
        return Options()
    except ValidationError as error:
        found: dict[str, list[Any]] = {}
        for each in error.errors(include_url=False):
            found.setdefault(str(each["loc"][0]), []).append(each)
        raise OptionsError([_error_sentence(name, errors) for name, errors in found.items()]) from None


def _error_sentence(place: str, errors: Sequence[Any]) -> str:
    if errors[0]["type"] == RULE:
        return str(errors[0]["msg"])
    name = next(variable for variable, field in VARIABLES.items() if place in (variable, field))
    field = Options.model_fields[VARIABLES[name]]
    reasons = {str(each["ctx"]["error"]) for each in errors if each["type"] == "value_error"} - {""}
    reason = f": {'; '.join(sorted(reasons))}" if reasons else ""
    value = os.environ.get(name, "").strip()
    if not field.repr:
        return f"{name} must be {allowed_values(field)}{reason}."
    shown = value if len(value) <= SHOWN else f"{value[:SHOWN]}…"
    return f"{name} is {shown!r}. It must be {allowed_values(field)}{reason}."


def allowed_values(field: FieldInfo) -> str:
    """The allowed values, as the end of "It must be …"."""
    if field.title:
        return field.title
    types = (field.annotation, *get_args(field.annotation))
    if bool in types:
        return "1 or 0"
    if get_origin(field.annotation) is Literal:
        words = [word for word in get_args(field.annotation) if word]
        return f"{', '.join(words[:-1])} or {words[-1]}"
    if field.annotation not in (int, float):
        return "one line of text"
    ends = {name: getattr(each, name) for each in field.metadata for name in ("ge", "le") if hasattr(each, name)}
    kind = "a whole number" if field.annotation is int else "a number"
    return f"{kind} from {ends['ge']:.15g} to {ends['le']:.15g}"


class UnknownVariable(NamedTuple):
    """An unknown variable that begins like the site's."""

    name: str
    nearest: str
    """The most similar known name, or empty."""

    def __str__(self) -> str:
        near = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"{self.name} is not a setting of the site{near}"


def unknown_variables(environ: Mapping[str, str] = os.environ) -> Iterator[UnknownVariable]:
    """The unknown variables that begin like the site's, by name."""
    known = {name.removeprefix(PREFIX): name for name in VARIABLES}
    for name in sorted(environ.keys() - VARIABLES.keys() - INTERNAL):
        if name.startswith(PREFIX):
            near = get_close_matches(name.removeprefix(PREFIX), known, 1)
            yield UnknownVariable(name, known[near[0]] if near else "")
