"""The findings of `doctor`: what was looked at, in which state it is, and what to do."""

from collections.abc import Iterator

import msgspec

OK, WARNING, ERROR = "ok", "warning", "error"


class Finding(msgspec.Struct):
    """One thing that was looked at. `todo` says what to do where `state` is not ok."""

    name: str
    state: str
    text: str
    todo: str = ""


Findings = Iterator[Finding]


def judge(name: str, text: str, *, error: bool = False, warning: bool = False, todo: str = "") -> Finding:
    """A finding in the worst state that applies; `todo` is dropped where all is well."""
    state = ERROR if error else WARNING if warning else OK
    return Finding(name, state, text, todo if state != OK else "")
