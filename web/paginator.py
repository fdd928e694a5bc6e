"""Pages of admin lists over large tables: what they show costs the same whatever the tables hold.

See docs/decisions.md: Own code in place of a library.
"""

from typing import Any

from django.core.paginator import Paginator
from django.db import connections
from django.utils.functional import cached_property

EXACT_UP_TO = 10_000
"""Rows. Longer lists end here, for a page costs the rows before it; whole tables tell an estimate of theirs."""


class EstimatedPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Counts exactly up to `exact_up_to` rows, and neither counts nor lists more than that.

    `is_capped`: more rows fit than it lists. `is_estimated`: the count is PostgreSQL's estimate. Both are known with
    `count`, and pages tell them.
    """

    is_capped = False
    is_estimated = False

    @property
    def exact_up_to(self) -> int:
        """Rows up to which the count is exact."""
        return EXACT_UP_TO

    @cached_property
    def count(self) -> int:
        """The number of rows: exact up to `exact_up_to`, beyond it PostgreSQL's estimate."""
        rows: Any = self.object_list
        if not rows.query.where:
            estimate = self._estimate(rows)
            if estimate > self.exact_up_to:
                self.is_estimated = True
                return estimate
        # Without what is counted for each row; one more proves that there are more.
        found = int(rows.order_by().values("pk")[: self.exact_up_to + 1].count())
        self.is_capped = found > self.exact_up_to
        return min(found, self.exact_up_to)

    @cached_property
    def num_pages(self) -> int:
        """The number of pages of the first `exact_up_to` rows."""
        listed = -(-self.exact_up_to // self.per_page)
        return min(int(super().num_pages), listed)

    @staticmethod
    def _estimate(rows: Any) -> int:
        """PostgreSQL's own, of the last ANALYZE; negative where there was none."""
        with connections[rows.db].cursor() as cursor:
            cursor.execute(
                "SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass", [rows.model._meta.db_table]
            )
            return int(cursor.fetchone()[0])
