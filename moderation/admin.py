"""Reports and the log in the admin."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from accounts.levels_admin import handle_column
from accounts.models import User
from media import attaching
from media.admin import ShotList, thumbnails
from moderation import appeal_admin, case_admin, link_admin, picture_admin, rule_admin, sentences  # noqa: F401 (they register their pages)
from moderation.models import Decision, Report
from moderation.reading import cases_for
from web.admin import Area, LogAdmin
from web.rest import parse_id


@admin.register(Report)
class ReportAdmin(LogAdmin):
    """Readers' reports."""

    area = Area.MODERATION
    rank = 3
    list_display = (
        "created_at",
        "of_item",
        "pictures",
        "session_id",
        handle_column("reporter", _("reporter")),
        "reason",
        "text",
        "of_case",
    )
    fields = ("id", "created_at", "item", "all_pictures", "session_id", "reporter", "reason", "text", "of_case")
    readonly_fields = fields
    list_filter = ("reason",)
    list_select_related = ("reporter", "case", "item__root")
    search_fields = ("=item__id", "=session_id", "=reporter__username")
    search_help_text = _("ID of a post or live session, or full username of the reporter.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Report]:
        """The reports of the cases that the caller may see."""
        rows: QuerySet[Report] = super().get_queryset(request)
        return rows.filter(case__in=cases_for(request.user))  # type: ignore[arg-type]

    @admin.display(description=_("post"), empty_value="-")
    def of_item(self, report: Report) -> int | None:
        """The item's id. None for a session."""
        return report.item_id

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ShotList]:
        """One query reads the pictures of a page."""
        return ShotList

    @admin.display(description=_("pictures"))
    def pictures(self, report: Any) -> SafeString:
        """The item's pictures, in the list. Those that are not for all are on the case's page, which logs it."""
        is_open = report.item is not None and report.item.is_open_to_all
        return thumbnails(report.shots if is_open else (), is_veiled=is_open and report.item.is_sensitive)

    @admin.display(description=_("pictures"))
    def all_pictures(self, report: Report) -> str:
        """The item's pictures, on the report's page, if they are for all."""
        if report.item is None or not report.item.is_open_to_all:
            return "-"
        media = attaching.media_by_item([report.item_id]).get(report.item_id or 0)
        return thumbnails(media, is_veiled=report.item.is_sensitive) if media else "-"

    @admin.display(description=_("case"))
    def of_case(self, report: Report) -> SafeString:
        """The case's state, linked."""
        address = reverse("admin:moderation_case_change", args=[report.case_id])
        return format_html('<a href="{}">{}</a>', address, report.case.get_state_display())


@admin.register(Decision)
class DecisionAdmin(LogAdmin):
    """The audit log, in sentences."""

    area = Area.MODERATION
    rank = 4
    list_display = ("at", "sentence", "why")
    list_display_links = ("at",)
    list_filter = ("verb",)
    list_select_related = ("by", "user", "rule")
    sortable_by = ("at",)
    search_fields = ("=item__id", "=session_id", "=by__username", "=user__username")
    search_help_text = _("ID of a post or live session, or full username of a moderator or member.")
    fields = ("at", "sentence", "why", "changes")
    readonly_fields = fields

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Decision], search_term: str
    ) -> tuple[QuerySet[Decision], bool]:
        """Find by user, by moderator or by id."""
        term = search_term.strip()
        if not term:
            return queryset, False
        users = list(User.objects.named(term.removeprefix("@")).values_list("pk", flat=True))
        found = Q(user__in=users) | Q(by__in=users)
        if number := parse_id(term):
            found |= Q(item=number) | Q(session_id=number)
        return queryset.filter(found), False

    @admin.display(description=_("what was done"))
    def sentence(self, decision: Decision) -> SafeString:
        return sentences.sentence(decision)

    @admin.display(description=_("why"))
    def why(self, decision: Decision) -> str:
        """The reasons."""
        return sentences.why(decision)

    @admin.display(description=_("what changed"))
    def changes(self, decision: Decision) -> str:
        """Values before and after."""
        return sentences.changes(decision)
