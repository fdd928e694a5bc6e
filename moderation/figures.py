"""Yearly figures of moderation, for a page that everybody may see.

Daily sums keep past years as they were: deleting an account deletes its reports.
"""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

from django.db.models import Max, Sum
from django.db.models.functions import ExtractYear
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from moderation.models import DailyFigures, Verb
from storage.connections import fetch

YEARS = 10
"""How many years the page shows."""


class Figure(NamedTuple):
    """A column of DailyFigures: its label, and what it counts."""

    column: str
    label: Any
    kinds: tuple[str, ...]


FIGURES = (
    Figure("reports", _("Reports received"), ("report",)),
    Figure("removals", _("Posts, pictures and live sessions removed"), (Verb.REJECT, Verb.HIDE, Verb.END)),
    Figure("warnings", _("Warnings"), (Verb.WARN,)),
    Figure("limits", _("Accounts limited"), (Verb.LIST,)),
    Figure("suspensions", _("Accounts suspended"), (Verb.BAN,)),
    Figure("appeals", _("Appeals received"), ("appeal",)),
    Figure("reversals", _("Decisions reversed after an appeal"), (Verb.GRANT,)),
)
COLUMNS = [figure.column for figure in FIGURES]


def _count_of(figure: Figure) -> str:
    kinds = ", ".join(f"'{kind}'" for kind in figure.kinds)
    return f"count(*) FILTER (WHERE kind IN ({kinds}))"


# A report that was counted stays counted.
COUNT = f"""
    INSERT INTO moderation_dailyfigures AS counted (day, {", ".join(COLUMNS)})
    SELECT (at AT TIME ZONE 'UTC')::date, {", ".join(map(_count_of, FIGURES))} FROM (
        SELECT created_at AS at, 'report' AS kind FROM moderation_report WHERE created_at >= %(since)s::timestamptz
        UNION ALL
        SELECT created_at, 'appeal' FROM moderation_appeal WHERE created_at >= %(since)s::timestamptz
        UNION ALL
        SELECT at, verb FROM moderation_decision
        WHERE at >= %(since)s::timestamptz AND (is_told OR verb = '{Verb.GRANT}')
    ) acts
    GROUP BY 1
    ON CONFLICT (day) DO UPDATE SET
        {", ".join(f"{column} = greatest(counted.{column}, excluded.{column})" for column in COLUMNS)}
    RETURNING day
"""


def count_days() -> int:
    """Count the days since the last counted one, with the one before it: transactions may have ended late."""
    last = DailyFigures.objects.aggregate(last=Max("day"))["last"]
    since = datetime.combine(last - timedelta(days=1), time(), UTC) if last else datetime(1970, 1, 1, tzinfo=UTC)
    return len(fetch(COUNT, {"since": since}))


def yearly() -> list[tuple[int, list[tuple[Any, int]]]]:
    """The figures of the last years with any, and of this year, newest first."""
    this_year = timezone.now().astimezone(UTC).year
    days = DailyFigures.objects.filter(day__gte=date(this_year - YEARS + 1, 1, 1))
    rows = list(
        days.annotate(year=ExtractYear("day")).values_list("year").annotate(*map(Sum, COLUMNS)).order_by("-year")
    )
    if not rows or rows[0][0] < this_year:
        rows.insert(0, (this_year, *[0] * len(FIGURES)))
    labels = [figure.label for figure in FIGURES]
    return [(year, list(zip(labels, counts, strict=True))) for year, *counts in rows]
