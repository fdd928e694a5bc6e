"""The site's environment, checked against the table of its variables (runtime/options.py) before anything starts.

Each wrong variable is a sentence that names it and says what is allowed; all are told at once. A variable without
a value (`FEEDSITE_HOST=`) counts as not set. The values of secrets, and addresses, which may hold passwords, are never
shown.
"""

import difflib
import os
import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from runtime.options import INTERNAL, OPTIONS, PREFIX, RENAMED, RETIRED, RULES, SMALL, SMALL_VALUES

T = TypeVar("T")


class OptionsError(RuntimeError):
    """The environment holds values that are not allowed; `lines` has a sentence for each."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = tuple(lines)


class Given:
    """The options of one environment, checked. Making it raises OptionsError.

    `texts` has what is set, as it is written, without empty values.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        old_names = {new: old for old, new in RENAMED.items() if not environ.get(new, "").strip()}
        environ = with_new_names(environ)
        self.texts = {name: environ[name] for name in OPTIONS if environ.get(name, "").strip()}
        self._values: dict[str, Any] = {}
        lines = [
            f"{name} is not read any more: {text}."
            for name, text in RETIRED.items()
            if environ.get(name, "").strip() not in ("", "0")
        ]
        wrong = set()
        for name, option in OPTIONS.items():
            text = self.texts.get(name, option.default)
            if not text:
                continue
            try:
                # A secret may begin or end with a space.
                self._values[name] = option.kind.parse(text if option.is_secret else text.strip())
            except ValueError as error:
                lines.append(option.wrong(text, str(error), old_names.get(name, "")))
                wrong.add(name)
        for rule in RULES:
            values = [self._values.get(name) for name in rule.names]
            if not wrong.intersection(rule.names) and rule.broken(*values):
                lines.append(rule.text.format(*values))
        if lines:
            raise OptionsError(lines)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    # A name that the table does not have is an error of the program.
    def _get(self, name: str, type_: type[T], default: T | None) -> T:
        value = self._values.get(OPTIONS[name].name, default)
        if not isinstance(value, type_):
            raise TypeError(f"{name} is {type(value).__name__}, not {type_.__name__}")
        return value

    def text(self, name: str, default: str = "") -> str:
        """The value of a variable as text."""
        return self._get(name, str, default)

    def whole(self, name: str, default: int | None = None) -> int:
        """The value of a variable as a whole number."""
        return self._get(name, int, default)

    def number(self, name: str) -> float:
        """The value of a variable as a number."""
        return self._get(name, float, None)

    def switch(self, name: str, default: bool | None = None) -> bool:
        """The value of a variable as a truth value."""
        return self._get(name, bool, default)

    def words(self, name: str) -> list[str]:
        """The value of a variable as a list; empty if it is not set."""
        return self._get(name, list, [])


def with_new_names(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables, with the values of old names under the new ones where those are not set."""
    values = dict(environ)
    for old, new in RENAMED.items():
        if environ.get(old, "").strip() and not environ.get(new, "").strip():
            values[new] = environ[old]
    return values


def renamed(environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """A sentence for each variable that is set by its old name."""
    for old, new in RENAMED.items():
        if environ.get(old, "").strip():
            yield f"{old} is called {new} now; the old name is read until version 0.3.0"


def read(environ: MutableMapping[str, str], beside: Path) -> Given:
    """The options of `environ`, to which the file FEEDSITE_ENV_FILE, or `.env` in the folder `beside`, adds what is not
    set there, and after it FEEDSITE_SMALL. Raises OptionsError.
    """
    named = environ.get("FEEDSITE_ENV_FILE", "").strip()
    path = Path(named) if named else beside / ".env"
    if named or path.exists():
        there = with_new_names(environ)
        for name, value in read_file(path).items():
            if RENAMED.get(name, name) not in there:
                environ[name] = value
    given = Given(environ)
    if not given.switch(SMALL):
        return given
    more = {name: value for name, value in SMALL_VALUES.items() if name not in given.texts}
    # For the programs, and for the keeper of the servers, which has no other options.
    environ.update(more | {SMALL: "1"})
    return Given(environ)


def read_file(path: Path) -> dict[str, str]:
    """The variables of a file of lines NAME=value, as systemd and compose read them too. Raises OptionsError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise OptionsError([f"The file of variables {path} cannot be read: {reason}."]) from error
    found, wrong = {}, []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith(("#", ";")):
            continue
        match = re.fullmatch(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z_0-9]*)=(.*)", line)
        if match:
            found[match[1]] = _unquoted(match[2].strip())
        else:  # the line may hold a secret
            wrong.append(f"Line {number} of {path} is not NAME=value.")
    if wrong:
        raise OptionsError(wrong)
    return found


def _unquoted(value: str) -> str:
    if re.fullmatch(r"'[^']*'", value):
        return value[1:-1]
    if re.fullmatch(r'"([^"\\]|\\.)*"', value):
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value


class Unknown(NamedTuple):
    """A variable that looks like one of the site's and is none."""

    name: str
    nearest: str
    """The option whose name is most alike; empty where none is."""

    def __str__(self) -> str:
        near = f"; the nearest name is {self.nearest}" if self.nearest else ""
        return f"{self.name} is not read by the site{near}"


def unknown(environ: Mapping[str, str] = os.environ) -> Iterator[Unknown]:
    """The variables that begin as the site's do and that it does not read, by name."""
    known = {name.removeprefix(PREFIX): name for name in OPTIONS}
    for name in sorted(environ.keys() - OPTIONS.keys() - INTERNAL - RETIRED.keys() - RENAMED.keys()):
        if name.startswith(PREFIX):
            near = difflib.get_close_matches(name.removeprefix(PREFIX), known, 1)
            yield Unknown(name, known[near[0]] if near else "")
