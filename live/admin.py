"""Live sessions in the admin: to look at, to end, to hide and to show again; and replays whose fan-out was given up.

Nobody edits what others planned.
"""

from collections.abc import Callable
from datetime import datetime

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from accounts.models import User
from feedsite.admin import DeliveryAdmin
from feedsite.paginator import EstimatedPaginator
from feedsite.rest import parse_id
from live import actions
from live.models import LiveSession, ReplayDelivery

AT_ONCE = 100
"""Sessions that one action changes, one by one."""


class HiddenFilter(admin.SimpleListFilter):
    title = "hidden"
    parameter_name = "hidden"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [("yes", "Yes"), ("no", "No")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[LiveSession]) -> QuerySet[LiveSession]:
        if self.value() is None:
            return queryset
        return queryset.filter(hidden_at__isnull=self.value() != "yes")


@admin.register(LiveSession)
class LiveSessionAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    list_display = ("id", "title", "host", "state", "starts_at", "started_at", "ended_at", "is_hidden", "review")
    list_filter = ("state", "automatic", HiddenFilter, "review")
    list_select_related = ("host",)
    ordering = ("-id",)
    sortable_by = ("id",)
    show_full_result_count = False
    paginator = EstimatedPaginator
    search_fields = ("id", "host__username")
    search_help_text = "The id of a session, or the whole name of its host."
    actions = ("force_end", "hide", "show_again")

    @admin.display(description="hidden", boolean=True)
    def is_hidden(self, session: LiveSession) -> bool:
        return session.hidden_at is not None

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[LiveSession], search_term: str
    ) -> tuple[QuerySet[LiveSession], bool]:
        """Both ways are index look-ups, however many sessions there are."""
        term = search_term.strip()
        if not term:
            return queryset, False
        found = Q(host__in=list(User.objects.named(term.removeprefix("@")).values_list("pk", flat=True)))
        if number := parse_id(term):
            found |= Q(pk=number)
        return queryset.filter(found), False

    def get_readonly_fields(self, request: HttpRequest, obj: LiveSession | None = None) -> list[str]:
        return [field.name for field in LiveSession._meta.fields]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: LiveSession | None = None) -> bool:
        """The actions of the list need it; a session's own page is to look at."""
        return obj is None and super().has_change_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: LiveSession | None = None) -> bool:
        return super().has_view_permission(request) or super().has_change_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: LiveSession | None = None) -> bool:
        """Never for good."""
        return False

    @admin.action(description="Force end (live: becomes a replay; upcoming: is cancelled)", permissions=["change"])
    def force_end(self, request: HttpRequest, queryset: QuerySet[LiveSession]) -> None:
        self._each(request, queryset, actions.force_end, "ended")

    @admin.action(description="Hide (from everybody but the host)", permissions=["change"])
    def hide(self, request: HttpRequest, queryset: QuerySet[LiveSession]) -> None:
        self._each(request, queryset, actions.hide, "hidden")

    @admin.action(description="Show again", permissions=["change"])
    def show_again(self, request: HttpRequest, queryset: QuerySet[LiveSession]) -> None:
        self._each(request, queryset, actions.show_again, "shown again")

    def _each(
        self, request: HttpRequest, queryset: QuerySet[LiveSession], verb: Callable[..., bool], done: str
    ) -> None:
        """Every session that the verb changed is in the log of the admin, by whom and when."""
        sessions = list(queryset.order_by("pk")[: AT_ONCE + 1])
        if len(sessions) > AT_ONCE:
            self.message_user(request, f"At most {AT_ONCE} sessions at once.", messages.ERROR)
            return
        now: datetime = timezone.now()
        changed = 0
        for session in sessions:
            if verb(session=session, now=now):
                changed += 1
                self.log_change(request, session, f"{done} (action)")
        self.message_user(request, f"{changed} session{'' if changed == 1 else 's'} {done}.")


@admin.register(ReplayDelivery)
class ReplayDeliveryAdmin(DeliveryAdmin):
    """Replays whose fan-out is not complete. Viewers see them all the same."""

    list_display = ("session", "host", "created_at", "attempts", "sweep_at", "parked_at", "last_error")
    list_select_related = ("session", "host")
    search_fields = ("=session__id", "host__username")
    ordering = ("-position",)
