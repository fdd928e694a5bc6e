"""Checks the push policy, inboxes, and filters of impressions."""

from datetime import datetime

from accounts.levels import policy
from discover import impressions
from operation import inboxes
from operation.doctor.findings import Findings, judge
from storage.connections import database_now


def impressions_fill() -> Findings:
    """Check how full today's impression filters are."""
    found = impressions.fill(database_now().date())
    fullest = max((each.impressions / each.capacity for each in found), default=0.0)
    yield judge(
        "impressions",
        f"{100 * fullest:.0f} % of today's capacity in the fullest shard",
        warning=fullest > 1,
        todo="Raise FEEDSITE_IMPRESSION_CAPACITY: further filters take the rest, and each claims more that is unseen.",
    )


def pushes() -> Findings:
    """Report the current policy."""
    found = policy.current()
    said = f"followers from level {found.push_level} on are pushed big-Vs' items"
    if found.inbox_from:
        said += f"; readers with fewer than {found.inbox_from:,} followees have no inbox"
    yield judge("policy", said)
    yield judge(
        "windows",
        "are of another timeline of PostgreSQL" if found.generation is None else "are of PostgreSQL's timeline",
        warning=found.generation is None,
        todo="See that beat and a worker run (accounts.follow_timeline); until then pages come from PostgreSQL.",
    )


def need_of_inboxes(now: datetime) -> Findings:
    """Report what another `inbox_from` would save."""
    try:
        yield judge("inboxes", inboxes.advice(now=now))
    except inboxes.NothingWrittenError as error:
        yield judge("inboxes", str(error))
