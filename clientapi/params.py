"""Query and body of a request together, as Mastodon reads them.

Names nest as in Rails, also in JSON: `media_ids[]` is a list, `source[privacy]` an object,
`keywords_attributes[][keyword]` or `keywords_attributes[0][keyword]` a list of objects. Blank means not sent. Unknown
names are ignored, because apps send fields of other servers.
"""

import re
from collections.abc import Collection
from typing import Any

from django.http import QueryDict
from rest_framework.request import Request

from clientapi.errors import NOT_OFFERED, ClientError, InvalidError
from web.languages import CODE_LENGTH, is_code
from web.rest import MAX_POSITION, parse_id
from web.strict_json import check_text

NAMES = 500
"""Maximum names in a query or form."""
DEPTH = 3
"""Maximum nesting of a name."""
PATH = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
BRACKETED = re.compile(r"\[([^\[\]]*)\]")
LONG = re.compile("[1-9][0-9]{16,19}", re.ASCII)
LOSABLE = re.compile("media|attach|poll|pictur|image|video|file", re.IGNORECASE)
"""What a post must not lose by a misspelt name."""
TRUE = frozenset({"1", "true", "on", "t", "yes"})
FALSE = frozenset({"0", "false", "off", "f", "no", ""})


class Params:
    """The parameters of one request."""

    def __init__(self, request: Request) -> None:
        self._fields = _nested(request.query_params)
        self.files: dict[str, Any] = {}
        self._read: set[str] = set()
        if request.method not in ("GET", "HEAD", "DELETE") or _has_body(request):
            data: Any = request.data
            self._fields |= _nested(data) if isinstance(data, QueryDict) else _expand_brackets(data)
            self.files = dict(getattr(request, "FILES", {}).items())
        if not self._fields:
            return
        try:
            check_text({name: value for name, value in self._fields.items() if name not in self.files})
        except ValueError as error:
            raise ClientError(400, f"The request cannot be read: {error}.") from None

    @classmethod
    def of(cls, fields: dict[str, Any]) -> "Params":
        """The parameters inside an object."""
        part = cls.__new__(cls)
        part._fields, part.files, part._read = fields, {}, set()
        return part

    def __contains__(self, name: str) -> bool:
        return self._value(name) is not None

    def _value(self, name: str) -> Any:
        self._read.add(name)
        return self._fields.get(name)

    def is_blank(self, name: str) -> bool:
        """Whether nothing is sent under this name."""
        return _is_blank(self._value(name))

    def refuse(self, *names: str) -> None:
        """Raise InvalidError for names that the site does not offer, if they are sent as more than "no"."""
        for name in names:
            if not self.is_blank(name) and str(self._value(name)).strip().lower() not in FALSE:
                raise InvalidError(f"Validation failed: {name} {NOT_OFFERED}")

    def language(self, name: str) -> str | None:
        """The code of a language, "" for none, or None if not sent. Raises InvalidError."""
        text = self.text(name, most=CODE_LENGTH, default="").strip().replace("_", "-")
        if text and not is_code(text):
            raise InvalidError(f"Validation failed: {name} is not a language")
        return text if name in self else None

    def refuse_unread(self) -> None:
        """Raise InvalidError for lists and objects under unknown names: they may be pictures or a poll."""
        for name, value in self._fields.items():
            if (
                LOSABLE.search(name)
                and isinstance(value, list | dict)
                and name not in self._read
                and not _is_blank(value)
            ):
                raise InvalidError(f"Validation failed: {name[:64]} is unknown")

    def text(self, name: str, *, most: int, default: str = "") -> str:
        """A text of at most `most` characters. Raises InvalidError."""
        value = self._value(name)
        if value is None:
            return default
        if isinstance(value, bool | int | float):
            value = str(value)
        if not isinstance(value, str):
            raise InvalidError(f"Validation failed: {name} must be text")
        if len(value) > most:
            raise InvalidError(f"Validation failed: {name} can have up to {most} characters")
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A boolean, or `default` if not sent. Raises InvalidError."""
        value = self._value(name)
        if _is_blank(value):
            return default
        text = str(value).strip().lower()
        if isinstance(value, list | dict) or text not in TRUE | FALSE:
            raise InvalidError(f"Validation failed: {name} must be true or false")
        return text in TRUE

    def choice(self, name: str, among: Collection[str], *, default: str = "") -> str:
        """One of the words in `among`, or `default` if not sent. Raises InvalidError."""
        value = self.text(name, most=100) or default
        if value != default and value not in among:
            raise InvalidError(f"Validation failed: {name} is not one of {', '.join(sorted(among))}")
        return value

    def number(self, name: str, *, least: int, most: int, default: int | None = None) -> int | None:
        """A whole number from `least` to `most`, or `default` if not sent. Raises InvalidError."""
        value = self._value(name)
        if _is_blank(value):
            return default
        text = str(value)
        if isinstance(value, bool | float) or not re.fullmatch(r"-?[0-9]{1,15}", text, re.ASCII):
            raise InvalidError(f"Validation failed: {name} must be a whole number")
        if not least <= int(text) <= most:
            raise InvalidError(f"Validation failed: {name} must be from {least} to {most}")
        return int(text)

    def id(self, name: str) -> int | None:
        """An id, or None if not sent. Raises Problem for a wrong one."""
        value = self._value(name)
        if _is_blank(value):
            return None
        return _id(name, value)

    def cursor(self, name: str) -> int | None:
        """An id, 0 for the beginning, or None if not sent. Raises Problem for a wrong one."""
        return 0 if str(self._value(name)) == "0" else self.id(name)

    def ids(self, name: str, *, most: int, some: bool = False) -> list[int]:
        """A list of at most `most` distinct ids. `some`: wrong ones are left out. Raises Problem for a wrong id, and
        InvalidError for too many.
        """
        values = [value for value in self.value_list(name) if not some or _number(value)]
        found = list(dict.fromkeys(_id(name, value) for value in values))
        if len(found) > most:
            raise InvalidError(f"Validation failed: at most {most} of {name}")
        return found

    def words(self, name: str) -> list[str]:
        """A list of texts. Raises InvalidError."""
        values = self.value_list(name)
        if not all(isinstance(value, str) for value in values):
            raise InvalidError(f"Validation failed: {name} must be a list of texts")
        return values

    def value_list(self, name: str) -> list[Any]:
        """A list of values without blank texts. One value becomes a list."""
        value = self._value(name)
        if isinstance(value, dict):
            value = list(value.values())
        values = value if isinstance(value, list) else [value]
        return [one for one in values if not (one is None or (isinstance(one, str) and not one.strip()))]

    def part(self, name: str) -> "Params":
        """The parameters inside an object. Raises InvalidError if it is none."""
        value = self._value(name)
        return Params.of({} if value is None else _object(name, value))

    def parts(self, name: str) -> list["Params"]:
        """The objects of a list, each as parameters. Raises InvalidError."""
        return [Params.of(_object(name, one)) for one in self.value_list(name)]


def _is_blank(value: Any) -> bool:
    if isinstance(value, list | dict):
        return all(map(_is_blank, value.values() if isinstance(value, dict) else value))
    return value is None or (isinstance(value, str) and not value.strip())


def _object(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidError(f"Validation failed: {name} must hold names and values")
    return value


def _number(value: Any) -> int | None:
    """An id. Longer ones of other servers (64 bits) lie beyond all of ours."""
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    return MAX_POSITION if LONG.fullmatch(text) and int(text) < 2**64 else parse_id(text)


def _id(name: str, value: Any) -> int:
    number = _number(value)
    if number is None:
        raise ClientError(400, f"{name} is not an id")
    return number


def _has_body(request: Request) -> bool:
    return bool(request.META.get("CONTENT_LENGTH", "").strip("0 "))


def _nested(given: QueryDict) -> dict[str, Any]:
    """Turn a query or form into nested fields. Raises Problem for a repeated name or too many names."""
    fields: dict[str, Any] = {}
    names = list(given)
    if len(names) > NAMES:
        raise ClientError(400, "Too many parameters")
    for name in names:
        values, path = given.getlist(name), _path(name)
        if len(values) > 1 and "" not in path[1:]:
            raise ClientError(400, f"{name[:64]} is given twice")
        _put(fields, path, values)
    return fields


def _expand_brackets(given: Any) -> Any:
    if isinstance(given, list):
        return [_expand_brackets(one) for one in given]
    if not isinstance(given, dict):
        return given
    fields: dict[str, Any] = {name: _expand_brackets(value) for name, value in given.items() if "[" not in name}
    for name, value in given.items():
        if "[" in name:
            path, part = _path(name), _expand_brackets(value)
            _put(fields, path, part if path[-1] == "" and isinstance(part, list) else [part])
    return fields


def _path(name: str) -> list[str]:
    """Split a name into its parts: `source[privacy]` into `source` and `privacy`.

    Raises Problem for unclosed or too deep brackets.
    """
    match = PATH.fullmatch(name)
    parts = BRACKETED.findall(match[2]) if match is not None else []
    if (match is None and "[" in name) or len(parts) > DEPTH:
        raise _unreadable(name)
    return [match[1] if match is not None else name, *parts]


def _unreadable(name: str) -> ClientError:
    return ClientError(400, f"{name[:64]} cannot be read")


def _put(fields: dict[str, Any], path: list[str], values: list[Any]) -> None:
    """Put values into nested fields at a path. Raises Problem if a name has values of different kinds."""
    first, *rest = path
    there = fields.get(first)
    if not rest:
        _put_value(fields, first, values[-1] if values else None)
        return
    if rest[0] == "":
        listed = [] if there is None or there == "" else there if isinstance(there, list) else [there]
        fields[first] = listed
        if len(rest) == 1:
            listed.extend(values)
            return
        for place, value in enumerate(values):  # a list of objects; each begins with its first name
            while len(listed) <= place:
                listed.append({})
            if not isinstance(listed[place], dict):
                raise _unreadable(first)
            _put(listed[place], rest[1:], [value])
        return
    if there is None or there == "":
        there = fields[first] = {}
    if not isinstance(there, dict):
        raise _unreadable(first)
    _put(there, rest, values)


def _put_value(fields: dict[str, Any], name: str, value: Any) -> None:
    if not isinstance(fields.get(name), list | dict):
        fields[name] = value
    elif not _is_blank(value):
        raise _unreadable(name)
