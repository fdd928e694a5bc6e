"""Common parts of the rooms' admins: rows to look at, and verbs that ask first and report what they did."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Count as CountOf
from django.db.models import IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext, gettext_noop, ngettext
from django.utils.translation import gettext_lazy as _

from storage import deliveries
from web.paginator import EstimatedPaginator

NAMED = 100
"""Rows that a confirmation names."""

Count = Callable[[int], str]
"""A sentence about so many rows, with `%(count)s` for the number."""


def counted(words: Count, count: int) -> str:
    """Words with their number, in the singular or plural."""
    return words(count) % {"count": number_format(count, force_grouping=True)}


def pointing(rows: QuerySet[Any], field: str) -> Coalesce:
    """How many `rows` point at the listed one by `field`."""
    counts = rows.filter(**{field: OuterRef("pk")}).order_by().values(field).values(count=CountOf("pk"))
    return Coalesce(Subquery(counts, output_field=IntegerField()), 0)


def is_list(request: HttpRequest) -> bool:
    """Whether a search is that of a list that is shown, whose page can tell something: not that of an action, which
    searches anew, nor that of a field which completes.
    """
    match = request.resolver_match
    return request.method == "GET" and match is not None and str(match.url_name).endswith("_changelist")


FORMS = ("_add", "_change", "_delete", "_password_change")
"""The ends of the names of pages with a form that writes."""


def is_writing(request: HttpRequest) -> bool:
    """Whether a request writes, or opens a form that does."""
    match = request.resolver_match
    return request.method == "POST" or (match is not None and str(match.url_name).endswith(FORMS))


class QuickListAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Lists that cost the same whatever their tables hold."""

    show_full_result_count = False
    paginator = EstimatedPaginator
    object_history_template = "admin/history.html"

    class Media:
        css: ClassVar[dict[str, list[str]]] = {"all": ["feedsite/admin.css"]}

    def wants_proof(self, request: HttpRequest) -> bool:
        """Whether the request is so dangerous that the site asks once more who makes it (accounts.site.AdminSite)."""
        return False


class ReadOnlyAdmin(QuickListAdmin):
    """Rows that are not written by hand."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """False: rows are only read."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """False: rows are only read."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """False: rows are only read."""
        return False


class LogAdmin(ReadOnlyAdmin):
    """Rows to look at, newest first, however many."""

    ordering = ("-id",)


# --- Verbs -----------------------------------------------------------------------------------------------
def ask(
    site: admin.AdminSite,
    request: HttpRequest,
    opts: Any,
    *,
    title: str,
    meaning: str,
    button: str,
    lines: Sequence[str],
    fields: Iterable[tuple[str, Any]],
) -> TemplateResponse:
    """The page that says what would be done to which rows (`lines`); it posts `fields` and `confirmed`."""
    context = site.each_context(request) | {
        "title": title,
        "opts": opts,
        "meaning": meaning,
        "button": button,
        "lines": lines[:NAMED],
        "more": max(len(lines) - NAMED, 0),
        "fields": list(fields),
    }
    return TemplateResponse(request, "admin/confirm.html", context)


class ActingAdmin(QuickListAdmin):
    """Lists whose rows verbs change one by one, each in the log of the admin and told in words."""

    at_once = 1000
    """Rows that one action changes."""

    def chosen(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        """The rows that an action is for, in the order of their keys; none, and a message, if they are too many."""
        rows = list(queryset.order_by("pk")[: self.at_once + 1])
        if len(rows) <= self.at_once:
            return rows
        words = gettext("Nothing was done: these are more than %(count)s, the most that are changed at once.")
        self.message_user(request, words % {"count": number_format(self.at_once, force_grouping=True)}, messages.ERROR)
        return []

    def confirm(
        self,
        request: HttpRequest,
        rows: Sequence[Any],
        action: str,
        *,
        title: str,
        meaning: str,
        button: str,
        name: Callable[[Any], str] = str,
    ) -> TemplateResponse:
        """Ask before `action` is done to these rows; its request comes again with `confirmed`."""
        fields = [("action", action), *((ACTION_CHECKBOX_NAME, row.pk) for row in rows)]
        lines = [name(row) for row in rows]
        return ask(
            self.admin_site, request, self.opts, title=title, meaning=meaning, button=button, lines=lines, fields=fields
        )

    def able(self, request: HttpRequest, rows: Sequence[Any], may: Callable[[Any], bool], *, left: Count) -> list[Any]:
        """The rows to ask about: those to which the verb would happen; of the others it is told how many and why."""
        able = [row for row in rows if may(row)]
        if len(able) < len(rows):
            self.message_user(request, counted(left, len(rows) - len(able)), messages.WARNING)
        return able

    def each(
        self,
        request: HttpRequest,
        rows: Iterable[Any],
        verb: Callable[[Any], bool],
        *,
        logged: str,
        done: Count,
        left: Count,
    ) -> None:
        """Do it to each row, and tell how many it changed (`done`) and how many not (`left`, which says why not).

        `logged` is what the log of the admin says, in English; pages of history say it in the reader's language.
        """
        changed = unchanged = 0
        for row in rows:
            if verb(row):
                changed += 1
                self.log_change(request, row, logged)
            else:
                unchanged += 1
        if changed:
            self.message_user(request, counted(done, changed), messages.SUCCESS)
        if unchanged:
            self.message_user(request, counted(left, unchanged), messages.WARNING)


class Deciding:
    """A part of the admin in which moderators decide."""

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Whether the request may decide cases, ban, and lift bans."""
        return request.user.has_perm("moderation.decide_case")


class ModeratedAdmin(Deciding, ActingAdmin):
    """Rows on which moderators act without a report (moderation.by_hand), from the list and from each one's page."""

    change_form_template = "admin/moderated.html"
    moderated_as: str
    """The name of such rows in moderation.by_hand."""
    moderated_at_once = 100

    @admin.action(description=_("Moderate: reject, ban, warn …"), permissions=["decide"])
    def moderate(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Go to the page on which moderators act on the chosen rows."""
        keys = list(queryset.order_by("pk").values_list("pk", flat=True)[: self.moderated_at_once + 1])
        if len(keys) > self.moderated_at_once:
            words = gettext("Nothing was done: these are more than %(count)s, the most that are changed at once.")
            self.message_user(request, words % {"count": self.moderated_at_once}, messages.ERROR)
            return None
        return redirect(self._moderate_address(*keys))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page of a row, with a link for moderators."""
        context = extra_context or {}
        if self.has_decide_permission(request):
            context = context | {"moderate": self._moderate_address(object_id)}
        return super().change_view(request, object_id, form_url, context)

    def _moderate_address(self, *keys: Any) -> str:
        return f"{reverse('admin:moderation_case_act')}?{self.moderated_as}={','.join(map(str, keys))}"


# --- Deliveries ------------------------------------------------------------------------------------------
class ParkedFilter(admin.SimpleListFilter):
    """Given up, or still at work."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The choices: given up or at work."""
        return [("parked", _("given up")), ("pending", _("at work"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[Any]:
        """The deliveries of the chosen kind."""
        match self.value():
            case "parked":
                queryset = queryset.parked()
            case "pending":
                queryset = queryset.pending()
        return queryset  # type: ignore[no-any-return]


class DeliveryAdmin(ReadOnlyAdmin, ActingAdmin):
    """Deliveries that are not complete, to be tried again."""

    list_filter = (ParkedFilter,)
    actions = ("retry",)

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Whether the request may have deliveries tried again."""
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    @admin.action(description=_("Retry the fan-out"), permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Have the chosen deliveries tried again."""
        rows = self.chosen(request, queryset)
        started = deliveries.retry(queryset.model._default_manager.filter(pk__in=[row.pk for row in rows]))
        for row in rows:
            self.log_change(request, row, gettext_noop("Retried the fan-out."))
        if started:
            self.message_user(
                request,
                counted(
                    lambda n: ngettext(
                        "%(count)s delivery was started anew.", "%(count)s deliveries were started anew.", n
                    ),
                    started,
                ),
                messages.SUCCESS,
            )
        elif rows:
            self.message_user(request, gettext("Nothing was done: these deliveries are complete."), messages.WARNING)
