from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from seen.models import MergeRun
from web.admin import LogAdmin


class FailedFilter(admin.SimpleListFilter):
    """A filter of merges by result."""

    title = _("result")
    parameter_name = "result"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
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
    search_help_text = _("Number of a task shard.")
