"""A finding: what was looked at, in which state it is, and what to do."""

from collections.abc import Iterator

import msgspec

OK, WARNING, ERROR = "ok", "warning", "error"
WAIT_SECONDS = 2.0
"""Seconds that Redis, the broker and the site's own processes get for an answer."""


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


def clock(name: str, theirs: float, began: float, ended: float) -> Finding:
    """How far a server's clock is from this machine's: at least so far, whenever in between it looked."""
    apart = max(began - theirs, theirs - ended, 0.0)
    return judge(
        name,
        f"{apart:.1f} s apart",
        error=apart > 60,
        warning=apart > 2,
        todo="Run NTP on both machines: ids, rates and sessions hang on the time.",
    )
