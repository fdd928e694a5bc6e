from collections.abc import Iterator

import msgspec

OK, WARNING, ERROR = "ok", "warning", "error"
WAIT_SECONDS = 2.0
"""Seconds for Redis, the broker and the site's processes to answer."""


class Finding(msgspec.Struct):
    """The result of a check. `todo` says what to do unless `state` is ok."""

    name: str
    state: str
    text: str
    todo: str = ""


Findings = Iterator[Finding]


def make_finding(name: str, text: str, *, error: bool = False, warning: bool = False, todo: str = "") -> Finding:
    """A finding with the worst state that applies. Without `todo` if ok."""
    state = ERROR if error else WARNING if warning else OK
    return Finding(name, state, text, todo if state != OK else "")


def clock(name: str, theirs: float, began: float, ended: float) -> Finding:
    """A finding about the difference of another machine's clock to this one, or to PostgreSQL's.

    `theirs` was read between `began` and `ended`, so the least possible difference counts.
    """
    apart = max(began - theirs, theirs - ended, 0.0)
    return make_finding(
        name,
        f"{apart:.1f} s apart",
        error=apart > 60,
        warning=apart > 2,
        todo="Run NTP on both machines. Ids, rate limits and sessions need the right time.",
    )
