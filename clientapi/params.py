"""The parameters of a request: the query and the body together, as Mastodon reads them.

Names nest as in forms of Rails: `media_ids[]` is a list, `source[privacy]` an object, `keywords_attributes[][keyword]`
or `keywords_attributes[0][keyword]` a list of objects. In JSON they are lists and objects. Unknown names are passed
over, because apps send fields of other servers. A value that is there and is wrong is refused.
"""

import re
from collections.abc import Collection
from typing import Any

from django.http import QueryDict
from rest_framework.request import Request

from clientapi.errors import InvalidError, Problem
from web.rest import parse_id
from web.strict_json import check_text

NAMES = 500
"""Names that a query or form may have."""
DEPTH = 3
"""How deep a name may nest; deeper ones are unknown."""
PATH = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
BRACKETED = re.compile(r"\[([^\[\]]*)\]")
TRUE = frozenset({"1", "true", "on", "t", "yes"})
FALSE = frozenset({"0", "false", "off", "f", "no", ""})


class Params:
    """The parameters of one request."""

    def __init__(self, request: Request) -> None:
        self._fields = _nested(request.query_params)
        self.files: dict[str, Any] = {}
        if request.method not in ("GET", "HEAD", "DELETE") or _has_body(request):
            data: Any = request.data
            self._fields |= _nested(data) if isinstance(data, QueryDict) else data
            self.files = dict(getattr(request, "FILES", {}).items())
        if not self._fields:
            return
        try:
            check_text({name: value for name, value in self._fields.items() if name not in self.files})
        except ValueError as error:
            raise Problem(400, f"The request cannot be read: {error}.") from None

    @classmethod
    def of(cls, fields: dict[str, Any]) -> "Params":
        """The parameters of a part of a request."""
        part = cls.__new__(cls)
        part._fields, part.files = fields, {}
        return part

    def __contains__(self, name: str) -> bool:
        return self._fields.get(name) is not None

    def text(self, name: str, *, most: int, default: str = "") -> str:
        """A text of at most `most` characters. Raises InvalidError."""
        value = self._fields.get(name)
        if value is None:
            return default
        if isinstance(value, bool | int | float):
            value = str(value)
        if not isinstance(value, str):
            raise InvalidError(f"Validation failed: {name} must be a text")
        if len(value) > most:
            raise InvalidError(f"Validation failed: {name} may have at most {most} characters")
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Yes or no. Raises InvalidError."""
        value = self._fields.get(name)
        if value is None:
            return default
        text = str(value).strip().lower()
        if isinstance(value, list | dict) or text not in TRUE | FALSE:
            raise InvalidError(f"Validation failed: {name} must be true or false")
        return text in TRUE

    def choice(self, name: str, among: Collection[str], *, default: str = "") -> str:
        """One of these words. Raises InvalidError."""
        value = self.text(name, most=100) or default
        if value != default and value not in among:
            raise InvalidError(f"Validation failed: {name} is not one of {', '.join(sorted(among))}")
        return value

    def number(self, name: str, *, least: int, most: int, default: int | None = None) -> int | None:
        """A whole number within bounds. Raises InvalidError."""
        value = self._fields.get(name)
        if value is None or value == "":
            return default
        text = str(value)
        if isinstance(value, bool | float) or not re.fullmatch(r"-?[0-9]{1,15}", text, re.ASCII):
            raise InvalidError(f"Validation failed: {name} must be a whole number")
        if not least <= int(text) <= most:
            raise InvalidError(f"Validation failed: {name} must be from {least} to {most}")
        return int(text)

    def id(self, name: str) -> int | None:
        """An id. Raises Problem for one that is none."""
        value = self._fields.get(name)
        if value is None or value == "":
            return None
        return _id(name, value)

    def ids(self, name: str, *, most: int) -> list[int]:
        """A list of ids, each once. Raises Problem and InvalidError."""
        found = list(dict.fromkeys(_id(name, value) for value in self.several(name)))
        if len(found) > most:
            raise InvalidError(f"Validation failed: at most {most} of {name}")
        return found

    def words(self, name: str) -> list[str]:
        """A list of texts. Raises InvalidError."""
        values = self.several(name)
        if not all(isinstance(value, str) for value in values):
            raise InvalidError(f"Validation failed: {name} must be a list of texts")
        return values

    def several(self, name: str) -> list[Any]:
        """A list, or one value as a list of it."""
        value = self._fields.get(name)
        if value is None or value == "":
            return []
        if isinstance(value, dict):
            return list(value.values())
        return value if isinstance(value, list) else [value]

    def part(self, name: str) -> "Params":
        """The parameters within an object. Raises InvalidError."""
        value = self._fields.get(name)
        return Params.of({} if value is None else _object(name, value))

    def parts(self, name: str) -> list["Params"]:
        """The parameters of each object in a list of objects."""
        return [Params.of(_object(name, one)) for one in self.several(name)]


def _object(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidError(f"Validation failed: {name} must hold names and values")
    return value


def _id(name: str, value: Any) -> int:
    number = parse_id(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else None
    if number is None:
        raise Problem(400, f"{name} is not an id")
    return number


def _has_body(request: Request) -> bool:
    return bool(request.META.get("CONTENT_LENGTH", "").strip("0 "))


def _nested(given: QueryDict) -> dict[str, Any]:
    """The names of a query or form as objects and lists. Raises Problem for a name that is given twice."""
    fields: dict[str, Any] = {}
    names = list(given)
    if len(names) > NAMES:
        raise Problem(400, "Too many parameters")
    for name in names:
        match = PATH.fullmatch(name)
        if match is None:
            continue
        values, parts = given.getlist(name), BRACKETED.findall(match[2])
        if len(parts) > DEPTH:
            continue
        if len(values) > 1 and "" not in parts:
            raise Problem(400, f"{name[:64]} is given twice")
        _put(fields, [match[1], *parts], values)
    return fields


def _put(fields: dict[str, Any], path: list[str], values: list[Any]) -> None:
    first, *rest = path
    if not rest:
        fields[first] = values[-1]
        return
    if rest == [""]:
        there = fields.setdefault(first, [])
        if isinstance(there, list):
            there.extend(values)
        return
    if rest[0] == "":  # a list of objects, each begun by its first name
        there = fields.setdefault(first, [])
        if isinstance(there, list):
            for value, place in zip(values, range(len(values)), strict=True):
                while len(there) <= place:
                    there.append({})
                if isinstance(there[place], dict):
                    _put(there[place], rest[1:], [value])
        return
    there = fields.setdefault(first, {})
    if isinstance(there, dict):
        _put(there, rest, values)
