"""Live sessions and deliveries of replays in the admin."""

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop, ngettext

from accounts import review
from accounts.levels_admin import handle_column
from accounts.models import User
from live import actions
from live.models import LiveSession, ReplayDelivery
from live.replays import fan_out
from media import attaching
from media.admin import thumbnails
from web.admin import ActedOnAdmin, Area, DeliveryAdmin, ModeratedAdmin
from web.rest import parse_id


@admin.register(LiveSession)
class LiveSessionAdmin(ModeratedAdmin, ActedOnAdmin):
    """Live sessions to look at, moderate and show again. The admin cannot edit what hosts planned."""

    area = Area.MODERATION
    rank = 6
    list_display = (
        "id",
        "title",
        handle_column("host", _("host")),
        "state",
        "starts_at",
        "started_at",
        "ended_at",
        "is_hidden",
        "review",
    )
    list_filter = ("state", "automatic", ("hidden_at", admin.EmptyFieldListFilter), "review")
    list_select_related = ("host",)
    ordering = ("-id",)
    sortable_by = ("id",)
    search_fields = ("id", "host__username")
    search_help_text = _("Session ID, or full username of its host.")
    actions = ("moderate", "show_again")
    moderated_as = "sessions"
    at_once = 100
    fields = (
        "id",
        "host",
        "title",
        "url",
        "cover_url",
        "pictures",
        "state",
        "starts_at",
        "started_at",
        "ended_at",
        "automatic",
        "minutes",
        "hidden_at",
        "review",
        "worded_at",
        "modified_at",
    )
    readonly_fields = fields

    @admin.display(description=_("hidden"), boolean=True)
    def is_hidden(self, session: LiveSession) -> bool:
        """Whether the session is hidden."""
        return session.hidden_at is not None

    @admin.display(description=_("pictures"))
    def pictures(self, session: LiveSession) -> SafeString | str:
        """Present and past covers."""
        media = attaching.covers_of([session.pk]).get(session.pk)
        return thumbnails(media, is_veiled=False) if media else "-"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[LiveSession], search_term: str
    ) -> tuple[QuerySet[LiveSession], bool]:
        """Search by username or id, through indexes."""
        term = search_term.strip()
        if not term:
            return queryset, False
        found = Q(host__in=list(User.objects.named(term.removeprefix("@")).values_list("pk", flat=True)))
        if number := parse_id(term):
            found |= Q(pk=number)
        return queryset.filter(found), False

    def view_on_site(self, session: LiveSession) -> str:
        """The session's page."""
        return reverse("live-session", args=[session.pk])

    def has_delete_permission(self, request: HttpRequest, obj: LiveSession | None = None) -> bool:
        return False

    def chosen(self, request: HttpRequest, queryset: QuerySet[LiveSession]) -> list[LiveSession]:
        """The chosen sessions whose hosts the caller may judge."""
        sessions = super().chosen(request, queryset.select_related("host"))
        return self.changeable_rows(
            request,
            sessions,
            lambda session: review.may_judge(session.host, request.user),  # type: ignore[arg-type]
            left=review.not_judged_message,
        )

    @admin.action(description=_("Show again"), permissions=["change"])
    def show_again(self, request: HttpRequest, queryset: QuerySet[LiveSession]) -> None:
        """Show the chosen sessions again."""
        self.apply_to_each(
            request,
            self.chosen(request, queryset),
            lambda session: actions.show_again(session=session, now=timezone.now()),
            logged=gettext_noop("Shown again."),
            done=lambda n: ngettext(
                "%(count)s live session is shown again.", "%(count)s live sessions are shown again.", n
            ),
            left=lambda n: ngettext(
                "%(count)s live session wasn't hidden.", "%(count)s live sessions weren't hidden.", n
            ),
        )


@admin.register(ReplayDelivery)
class ReplayDeliveryAdmin(DeliveryAdmin):
    """Replays with incomplete fan-out."""

    fan_out = fan_out
    list_display = (
        "session",
        handle_column("host", _("host")),
        "created_at",
        "attempts",
        "sweep_at",
        "parked_at",
        "last_error",
    )
    list_select_related = ("session", "host")
    search_fields = ("=session__id", "=host__username")
    search_help_text = _("Session ID, or full username of its host.")
    fields = ("session", "host", "created_at", "attempts", "sweep_at", "parked_at", "last_error")
    readonly_fields = fields
    ordering = ("-position",)
