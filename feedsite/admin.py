"""What the admins of the rooms have in common."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from feedsite import deliveries
from feedsite.paginator import EstimatedPaginator

AT_ONCE = 1000
"""Deliveries of one action that are written into the log one by one."""


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Rows that nobody writes by hand."""

    show_full_result_count = False
    paginator = EstimatedPaginator

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class LogAdmin(ReadOnlyAdmin):
    """Rows to look at, newest first, however many."""

    ordering = ("-id",)


class ParkedFilter(admin.SimpleListFilter):
    """Given up, or still at work."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("parked", "parked"), ("pending", "pending")]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[Any]:
        match self.value():
            case "parked":
                queryset = queryset.parked()
            case "pending":
                queryset = queryset.pending()
        return queryset  # type: ignore[no-any-return]


class DeliveryAdmin(ReadOnlyAdmin):
    """Deliveries that are not complete, to be tried again."""

    list_filter = (ParkedFilter,)
    actions = ("retry",)

    def has_retry_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    @admin.action(description="Retry the fan-out", permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for delivery in queryset.order_by("pk")[:AT_ONCE]:
            self.log_change(request, delivery, "retried (action)")
        count = deliveries.retry(queryset)
        self.message_user(request, f"{count} deliveries start anew.", messages.SUCCESS)
