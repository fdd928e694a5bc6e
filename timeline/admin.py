"""Deliveries and demotions in the admin: what waits, what was given up, how far a backfill has come."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from timeline import fanout
from timeline.models import Backfill, Delivery

AT_ONCE = 1000
"""Deliveries of one action that are written into the log one by one."""


class ParkedFilter(admin.SimpleListFilter):
    """Given up, or still at work."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("parked", "parked"), ("pending", "pending")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> QuerySet[Delivery]:
        if self.value() == "parked":
            return queryset.filter(parked_at__isnull=False)
        if self.value() == "pending":
            return queryset.filter(parked_at=None)
        return queryset


class ReadOnlyAdmin:
    """Rows that only the workers write."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object | None = None) -> bool:
        return False


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin, admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Items whose fan-out is not complete. Readers see them all the same."""

    list_display = ("item_id", "sender", "created_at", "attempts", "sweep_at", "parked_at", "last_error")
    list_filter = (ParkedFilter,)
    list_select_related = ("sender",)
    search_fields = ("=item__id", "sender__username")
    ordering = ("-item_id",)
    show_full_result_count = False
    actions = ("retry",)

    def has_retry_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("timeline.change_delivery")

    @admin.action(description="Retry the fan-out", permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        for delivery in queryset.order_by("pk")[:AT_ONCE]:
            self.log_change(request, delivery, "retried (action)")
        count = fanout.retry(item_ids=queryset.values_list("pk", flat=True))
        self.message_user(request, f"{count} deliveries start anew.", messages.SUCCESS)


@admin.register(Backfill)
class BackfillAdmin(ReadOnlyAdmin, admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Demotions of big-Vs: the flag falls when all followers' inboxes are filled."""

    list_display = ("sender", "progress", "started_at", "finished_at", "cancelled_at", "last_error")
    list_select_related = ("sender",)
    search_fields = ("sender__username",)
    ordering = ("-started_at",)

    @admin.display(description="followers filled")
    def progress(self, backfill: Backfill) -> SafeString:
        return format_html(
            '<progress value="{}" max="{}" aria-label="followers filled"></progress> {} of {}',
            backfill.done,
            max(backfill.followers, 1),
            backfill.done,
            backfill.followers,
        )
