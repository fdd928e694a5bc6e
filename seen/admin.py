"""The played history in the admin: its state, and the records of merges."""

import math
from typing import Any, NamedTuple

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from seen import status
from seen.models import MergeRun, PlayedHistory
from seen.ring import NODES
from seen.state import Hour, Node, Status, TaskShard
from web.admin import LogAdmin


class FailedFilter(admin.SimpleListFilter):
    """Filters runs by result."""

    title = _("result")
    parameter_name = "result"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The choices."""
        return [("failed", _("failed")), ("done", _("done"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[MergeRun]) -> QuerySet[MergeRun]:
        """The chosen runs."""
        if self.value() == "failed":
            return queryset.exclude(error="")
        return queryset.filter(error="") if self.value() == "done" else queryset


@admin.register(MergeRun)
class MergeRunAdmin(LogAdmin):
    """Merges of plays, read-only."""

    list_display = ("started_at", "node", "task_shard", "users", "plays", "seconds", "error")
    list_filter = (FailedFilter,)
    search_fields = ("=task_shard",)
    search_help_text = _("The number of a task shard.")


# --- The page of its state -------------------------------------------------------------------------------
class Arc(NamedTuple):
    """A node of the ring in the drawing."""

    node: Node
    outline: str
    x: float
    y: float


class Bar(NamedTuple):
    """An hour in the drawing, of 100."""

    hour: Hour
    x: float
    y: float
    height: float


class Line(NamedTuple):
    """A task shard's bar in the drawing, of 100."""

    task_shard: TaskShard
    left: float
    merging: float
    current: float

    @property
    def merging_from(self) -> float:
        """Where the part being merged begins."""
        return self.left

    @property
    def current_from(self) -> float:
        """Where the waiting part begins."""
        return self.left + self.merging


OUTER, INNER = 150.0, 88.0
"""Radii of the ring."""
GAP = math.radians(1.2)


def _arc(node: Node) -> Arc:
    """Node 0 is at the top, the others follow clockwise."""
    width = 2 * math.pi / NODES
    middle = node.number * width - math.pi / 2
    begin, end = middle - width / 2 + GAP, middle + width / 2 - GAP

    def at(radius: float, angle: float) -> str:
        return f"{radius * math.cos(angle):.1f} {radius * math.sin(angle):.1f}"

    outline = (
        f"M{at(OUTER, begin)}A{OUTER} {OUTER} 0 0 1 {at(OUTER, end)}"
        f"L{at(INNER, end)}A{INNER} {INNER} 0 0 0 {at(INNER, begin)}Z"
    )
    radius = (OUTER + INNER) / 2
    return Arc(node, outline, round(radius * math.cos(middle), 1), round(radius * math.sin(middle), 1))


def _bars(hours: list[Hour]) -> list[Bar]:
    most = max((hour.users for hour in hours), default=0) or 1
    heights = (100 * hour.users / most for hour in hours)
    return [
        Bar(hour, place + 0.1, round(100 - height, 2), round(height, 2))
        for place, (hour, height) in enumerate(zip(hours, heights, strict=True))
    ]


def _lines(task_shards: list[TaskShard]) -> list[Line]:
    most = max((one.users for one in task_shards), default=0) or 1
    return [
        Line(one, *(round(100 * users / most, 2) for users in (one.left, one.merging, one.current)))
        for one in task_shards
    ]


@admin.register(PlayedHistory)
class PlayedHistoryAdmin(LogAdmin):
    """One page, computed at each visit."""

    def get_urls(self) -> list[URLPattern]:
        """The page's address."""
        return [
            path("", self.admin_site.admin_view(require_safe(self.show)), name="seen_playedhistory_changelist"),
        ]

    def show(self, request: HttpRequest) -> TemplateResponse:
        """The page. Raises PermissionDenied."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = status.collect(now=timezone.now())
        context = self.admin_site.each_context(request) | {
            "title": capfirst(self.opts.verbose_name),
            "opts": self.opts,
        }
        return TemplateResponse(request, "admin/seen/playedhistory/status.html", context | _drawn(found))


def _drawn(found: Status) -> dict[str, Any]:
    hours = found.hours
    return {
        "status": found,
        "arcs": [_arc(node) for node in found.nodes],
        "bars": _bars(hours),
        "lines": _lines(found.task_shards),
        "most_users": max(hour.users for hour in hours),
        "users_a_day": sum(hour.users for hour in hours),
        "plays_a_day": sum(hour.plays for hour in hours),
        "filters": sum(month.filters for month in found.months),
        "moving_total": found.migration.merged + found.migration.left if found.migration else 0,
        "filter_bytes": sum(month.size for month in found.months),
    }
