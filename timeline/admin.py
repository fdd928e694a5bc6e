from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.levels_admin import handle_column
from timeline.fanout import fan_out
from timeline.models import Backfill, Delivery
from web.admin import DeliveryAdmin, ReadOnlyAdmin


@admin.register(Delivery)
class ItemDeliveryAdmin(DeliveryAdmin):
    """Items whose fan-out is not complete."""

    fan_out = fan_out
    list_display = (
        "of_item",
        handle_column("sender", _("author")),
        "created_at",
        "attempts",
        "sweep_at",
        "parked_at",
        "last_error",
    )
    list_select_related = ("sender",)
    search_fields = ("=item__id", "=sender__username")
    search_help_text = _("Post ID, or full username of its author.")
    fields = ("item", "sender", "created_at", "attempts", "sweep_at", "parked_at", "last_error")
    readonly_fields = fields
    ordering = ("-item_id",)

    @admin.display(description=_("post"), ordering="item_id")
    def of_item(self, delivery: Delivery) -> int:
        """The item's id."""
        return delivery.item_id


@admin.register(Backfill)
class BackfillAdmin(ReadOnlyAdmin):
    """Demotions of big-Vs, with their progress."""

    list_display = (
        handle_column("sender", _("author")),
        "progress",
        "started_at",
        "finished_at",
        "cancelled_at",
        "last_error",
    )
    list_select_related = ("sender",)
    search_fields = ("=sender__username",)
    search_help_text = _("Full username.")
    fields = ("sender", "progress", "started_at", "finished_at", "cancelled_at", "last_error")
    readonly_fields = fields
    ordering = ("-started_at",)

    @admin.display(description=_("followers done"))
    def progress(self, backfill: Backfill) -> SafeString:
        """A progress bar."""
        return format_html(
            '<progress value="{}" max="{}" aria-label="{}"></progress> {}',
            backfill.done,
            max(backfill.followers, 1),
            gettext("followers done"),
            gettext("%(done)s of %(followers)s") % {"done": backfill.done, "followers": backfill.followers},
        )
