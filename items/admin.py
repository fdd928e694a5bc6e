"""Items in the admin: to look at, to hide and to bring back. Nobody edits what others said, and nothing is removed."""

from collections.abc import Callable

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from accounts.models import User
from feedsite.paginator import EstimatedPaginator
from items import actions
from items.models import Item
from items.templatetags.reading import excerpt

AT_ONCE = 1000
"""Items that one action changes, one by one."""
LONGEST_ID = 16
"""Digits."""


@admin.register(Item)
class ItemAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    list_display = ("id", "sender", "excerpt", "status", "visibility", "type", "created_at")
    list_filter = ("status", "visibility", "type")
    list_select_related = ("sender",)
    ordering = ("-id",)
    sortable_by = ("id",)
    show_full_result_count = False
    paginator = EstimatedPaginator
    search_fields = ("id", "sender__username")
    search_help_text = "The id of an item, or the whole name of its sender."
    actions = ("delete", "restore")

    @admin.display(description="text")
    def excerpt(self, item: Item) -> str:
        return excerpt(item.title or item.text, 80)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Item], search_term: str
    ) -> tuple[QuerySet[Item], bool]:
        """Both ways are index look-ups, however many items there are."""
        term = search_term.strip()
        if not term:
            return queryset, False
        senders = list(User.objects.named(term.removeprefix("@")).values_list("pk", flat=True))
        found = Q(sender__in=senders)
        if term.isascii() and term.isdigit() and len(term) <= LONGEST_ID:
            found |= Q(pk=int(term))
        return queryset.filter(found), False

    def get_readonly_fields(self, request: HttpRequest, obj: Item | None = None) -> list[str]:
        return [field.name for field in Item._meta.fields]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Item | None = None) -> bool:
        """The actions of the list need it; an item's own page is to look at."""
        return obj is None and super().has_change_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Item | None = None) -> bool:
        return super().has_view_permission(request) or super().has_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Item | None = None) -> bool:
        """Never for good."""
        return False

    @admin.action(description="Delete (hides them; can be restored)", permissions=["change"])
    def delete(self, request: HttpRequest, queryset: QuerySet[Item]) -> None:
        self._each(request, queryset, actions.delete, "deleted")

    @admin.action(description="Restore (publishes them again)", permissions=["change"])
    def restore(self, request: HttpRequest, queryset: QuerySet[Item]) -> None:
        self._each(request, queryset, actions.restore, "restored")

    def _each(self, request: HttpRequest, queryset: QuerySet[Item], verb: Callable[..., bool], done: str) -> None:
        items = list(queryset.order_by("pk")[: AT_ONCE + 1])
        if len(items) > AT_ONCE:
            self.message_user(request, f"At most {AT_ONCE} items at once.", messages.ERROR)
            return
        changed = 0
        for item in items:
            if verb(item=item):
                changed += 1
                self.log_change(request, item, f"{done} (action)")
        self.message_user(request, f"{changed} item{'' if changed == 1 else 's'} {done}.")
