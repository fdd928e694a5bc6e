"""Deliveries and demotions in the admin: what waits, what was given up, how far a backfill has come."""

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString

from feedsite.admin import DeliveryAdmin, ReadOnlyAdmin
from timeline.models import Backfill, Delivery


@admin.register(Delivery)
class ItemDeliveryAdmin(DeliveryAdmin):
    """Items whose fan-out is not complete. Readers see them all the same."""

    list_display = ("item_id", "sender", "created_at", "attempts", "sweep_at", "parked_at", "last_error")
    list_select_related = ("sender",)
    search_fields = ("=item__id", "sender__username")
    ordering = ("-item_id",)


@admin.register(Backfill)
class BackfillAdmin(ReadOnlyAdmin):
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
