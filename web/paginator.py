"""Pages of the admin's lists, with a cost that does not grow with the tables.

See docs/decisions.md: Own code in place of a library.
"""

from typing import Any

from django.core.paginator import Paginator
from django.db import connections
from django.utils.functional import cached_property

EXACT_UP_TO = 10_000
"""Rows. Longer lists end here, because a page costs all rows before it. Whole tables show an estimated count."""


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """A paginator that counts and lists at most `exact_up_to` rows.

    `count` sets `is_capped` (more rows match) and `is_estimated`.
    """

    is_capped = False
    is_estimated = False

    @property
    def exact_up_to(self) -> int:
        """The most rows to count exactly."""
        return EXACT_UP_TO

    @cached_property
    def count(self) -> int:
        """The number of rows: at most `exact_up_to`, or PostgreSQL's estimate for a whole table."""
        rows: Any = self.object_list
        if not rows.query.where:
            estimate = self._estimate(rows)
            if estimate > self.exact_up_to:
                self.is_estimated = True
                return estimate
        # One row more proves that there are more.
        found = int(rows.order_by().values("pk")[: self.exact_up_to + 1].count())
        self.is_capped = found > self.exact_up_to
        return min(found, self.exact_up_to)

    @cached_property
    def num_pages(self) -> int:
        """The number of listed pages."""
        listed = -(-self.exact_up_to // self.per_page)
        return min(int(super().num_pages), listed)

    @staticmethod
    def _estimate(rows: Any) -> int:
        """PostgreSQL's estimate of the table's rows from the last ANALYZE. Negative if there was none."""
        with connections[rows.db].cursor() as cursor:
            cursor.execute(
                "SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass", [rows.model._meta.db_table]
            )
            return int(cursor.fetchone()[0])
