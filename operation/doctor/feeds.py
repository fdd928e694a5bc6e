from accounts.levels import policy
from discover import impressions
from operation.doctor.findings import Findings, make_finding
from storage.connections import database_now


def impressions_fill() -> Findings:
    """Check how full today's filters are."""
    found = impressions.shard_fills(database_now().date())
    fullest = max((each.impressions / each.capacity for each in found), default=0.0)
    yield make_finding(
        "impressions",
        f"{100 * fullest:.0f} % of today's capacity in the fullest shard",
        warning=fullest > 1,
        todo="Raise FEEDSITE_IMPRESSION_CAPACITY. Until then Discover hides some posts that readers have not seen.",
    )


def pushes() -> Findings:
    """Report the current policy."""
    found = policy.current()
    said = f"big-Vs' posts are pushed to followers from level {found.push_level}"
    if found.inbox_from:
        said += f"; readers who follow fewer than {found.inbox_from:,} have no inbox"
    yield make_finding("policy", said)
    yield make_finding(
        "windows",
        "do not match the database, which was restored or promoted"
        if found.generation is None
        else "match the database",
        warning=found.generation is None,
        todo="Check that beat and a worker run: accounts.follow_timeline repairs this. Pages come from PostgreSQL "
        "until then.",
    )
