"""Reads JSON bodies strictly: RFC 8259, no repeated keys, nothing that PostgreSQL cannot store, bounded.

See docs/decisions.md: Own code in place of a library.
"""

import json
import math
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import IO, Any, NoReturn

from rest_framework import exceptions
from rest_framework.parsers import BaseParser

BODY_BYTES = 64 * 1024
"""The most bytes of a body, unless its route has another bound."""
DEPTH = 32
"""The deepest nesting of objects and lists."""
JSON_TYPE = "application/json"
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class PayloadTooLargeError(exceptions.APIException):
    """The body is too long: 413."""

    status_code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"

    def __init__(self, allowed: int = BODY_BYTES) -> None:
        super().__init__(f"The body may have at most {allowed} bytes.")


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a key is repeated")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class _Numbers:
    """Parses numbers, and bounds their digits: PostgreSQL stores 1e308 as 309 digits."""

    def __init__(self) -> None:
        self.digits = 0

    def whole(self, text: str) -> int:
        if len(text) > 20 or not -(2**63) <= int(text) < 2**64:
            raise ValueError("a whole number does not fit in 64 bits")
        return int(text)

    def real(self, text: str) -> float:
        number = float(text)
        if not math.isfinite(number):
            raise ValueError("a number is too large")
        if number:
            self.digits += abs(int(math.log10(abs(number))))
        if self.digits > BODY_BYTES:
            raise ValueError("the numbers are too large")
        return number


def check_text(value: Any) -> None:
    """Raise ValueError for NUL, a lone surrogate, or too deep nesting."""
    level: list[Any] = [value]
    for _ in range(DEPTH + 1):
        strings = [one for one in level if isinstance(one, str)]
        nested = [one for one in level if isinstance(one, dict | list)]
        for one in nested:
            if isinstance(one, dict):
                strings.extend(one)
        if any(UNSTORABLE.search(string) for string in strings):
            raise ValueError("a string holds a NUL or a lone surrogate")
        if not nested:
            return
        level = [part for one in nested for part in (one.values() if isinstance(one, dict) else one)]
    raise ValueError(f"it is nested deeper than {DEPTH}")


def parse_json(data: bytes) -> dict[str, Any]:
    """Parse a body that must be a JSON object. Raises ParseError."""
    numbers = _Numbers()
    try:
        value = json.loads(
            data.decode(),
            object_pairs_hook=_unique_fields,
            parse_constant=_refuse_constant,
            parse_float=numbers.real,
            parse_int=numbers.whole,
        )
        check_text(value)
    except RecursionError:
        raise exceptions.ParseError(f"Malformed JSON: nested deeper than {DEPTH}.") from None
    except UnicodeDecodeError:
        raise exceptions.ParseError("Malformed JSON: the body is not UTF-8.") from None
    except ValueError as error:
        raise exceptions.ParseError(f"Malformed JSON: {error}.") from None
    if not isinstance(value, dict):
        raise exceptions.ParseError("The body must be a JSON object.")
    return value


class StrictJSONParser(BaseParser):
    """Parses bodies of at most `body_bytes`, whatever Content-Length says."""

    media_type = JSON_TYPE

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The body's object. Raises ParseError and PayloadTooLargeError."""
        allowed = getattr((parser_context or {}).get("view"), "body_bytes", BODY_BYTES)
        data = stream.read(allowed + 1)
        if len(data) > allowed:
            raise PayloadTooLargeError(allowed)
        return parse_json(data)
