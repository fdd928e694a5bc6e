from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Count as CountOf
from django.db.models import IntegerField, OuterRef, QuerySet, Subquery, TextChoices
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext, gettext_noop, ngettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from storage import deliveries
from storage.queue import HintTask
from web.paginator import CappedPaginator
from web.uploads import Limit

NAMED = 100
"""The most rows that a confirmation names."""

Count = Callable[[int], str]
"""A sentence for a number of rows, with `%(count)s` for the number."""


def sentence_with_count(words: Count, count: int) -> str:
    """A sentence with a number in it. `words` gives the sentence for the number."""
    return words(count) % {"count": number_format(count, force_grouping=True)}


def count_referring(rows: QuerySet[Any], field: str) -> Coalesce:
    """An SQL expression that counts the `rows` that refer to the listed row."""
    counts = rows.filter(**{field: OuterRef("pk")}).order_by().values(field).values(count=CountOf("pk"))
    return Coalesce(Subquery(counts, output_field=IntegerField()), 0)


def is_list(request: HttpRequest) -> bool:
    """Whether the request shows a list of the admin, which can show messages."""
    match = request.resolver_match
    return request.method == "GET" and match is not None and str(match.url_name).endswith("_changelist")


FORMS = ("_add", "_change", "_delete", "_password_change")
"""Ends of the names of pages with a form that writes."""


def is_writing(request: HttpRequest) -> bool:
    """Whether a request writes, or opens a form that does."""
    match = request.resolver_match
    return request.method == "POST" or (match is not None and str(match.url_name).endswith(FORMS))


class Area(TextChoices):
    """The parts of the admin, by what people do there."""

    MODERATION = "moderation", _("Moderation")
    PEOPLE = "people", pgettext_lazy("area of the admin", "People")
    SITE = "site", _("Site")
    SYSTEM = "system", _("System")


class QuickListAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Base of the admin's lists whose cost does not grow with their tables."""

    area = Area.SYSTEM
    rank = 50
    """The list's place in its area. Lists of one rank stand by name."""
    shortcuts: Sequence[tuple[Any, str]] = ()
    """Parts of the list that the area names too: a name, and the query."""
    takes_files: Mapping[str, Limit] = {}
    """Limits of the form for a row, if it has files (web.uploads)."""
    show_full_result_count = False
    paginator = CappedPaginator
    show_facets = admin.ShowFacets.NEVER
    object_history_template = "admin/history.html"

    class Media:
        css: ClassVar[dict[str, list[str]]] = {"all": ["feedsite/admin.css"]}

    def waiting(self, request: HttpRequest) -> QuerySet[Any] | None:
        """The rows that wait for a person. None if the list has no such rows."""
        return None

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """What was done to a row in the admin."""
        return super().history_view(request, object_id, {"title": gettext("Log"), **(extra_context or {})})

    def wants_proof(self, request: HttpRequest) -> bool:
        """Whether the user must confirm who they are."""
        return False


class ReadOnlyAdmin(QuickListAdmin):
    """Rows that nobody edits by hand."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class LogAdmin(ReadOnlyAdmin):
    """Read-only rows, newest first."""

    ordering = ("-id",)


# --- Verbs -----------------------------------------------------------------------------------------------
def confirmation_page(
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
    """The page that confirms an action. It posts `fields` and `confirmed`."""
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
    """Base of lists with actions that change row by row, log and report."""

    at_once = 1000
    """The most rows that one action changes."""

    def chosen(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        """The chosen rows. If there are too many, shows an error and returns none."""
        rows = list(queryset.order_by("pk")[: self.at_once + 1])
        if len(rows) <= self.at_once:
            return rows
        words = gettext("Nothing changed: choose %(count)s at most.")
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
        """Ask before `action` changes these rows."""
        fields = [("action", action), *((ACTION_CHECKBOX_NAME, row.pk) for row in rows)]
        lines = [name(row) for row in rows]
        return confirmation_page(
            self.admin_site, request, self.opts, title=title, meaning=meaning, button=button, lines=lines, fields=fields
        )

    def changeable_rows(
        self, request: HttpRequest, rows: Sequence[Any], may: Callable[[Any], bool], *, left: Count
    ) -> list[Any]:
        """The rows that the action can change. Shows a message about the others."""
        able = [row for row in rows if may(row)]
        if len(able) < len(rows):
            self.message_user(request, sentence_with_count(left, len(rows) - len(able)), messages.WARNING)
        return able

    def apply_to_each(
        self,
        request: HttpRequest,
        rows: Iterable[Any],
        verb: Callable[[Any], bool],
        *,
        logged: str,
        done: Count,
        left: Count,
    ) -> None:
        """Call `verb` for each row, log each change, and show messages. `logged` is English."""
        changed = unchanged = 0
        for row in rows:
            if verb(row):
                changed += 1
                self.log_change(request, row, logged)
            else:
                unchanged += 1
        if changed:
            self.message_user(request, sentence_with_count(done, changed), messages.SUCCESS)
        if unchanged:
            self.message_user(request, sentence_with_count(left, unchanged), messages.WARNING)


class ActedOnAdmin(ActingAdmin):
    """Rows with actions, which nobody adds or edits one by one."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may use the list's actions."""
        return obj is None and super().has_change_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """The permission to change is enough."""
        return super().has_view_permission(request) or super().has_change_permission(request)


class DecidingMixin:
    """A mixin for parts of the admin in which moderators decide. The package of moderation sets both names."""

    decide_permission: ClassVar[str]
    decide_page: ClassVar[str]

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Whether the user may decide cases."""
        return request.user.has_perm(self.decide_permission)


class ModeratedAdmin(DecidingMixin, ActingAdmin):
    """Rows that moderators can act on without a report."""

    change_form_template = "admin/moderated.html"
    moderated_as: str
    """The rows' name in the query of `decide_page`."""
    moderated_at_once = 100

    @admin.action(description=_("Moderate: reject, suspend, warn …"), permissions=["decide"])
    def moderate(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        """Open moderation's page for the chosen rows."""
        keys = list(queryset.order_by("pk").values_list("pk", flat=True)[: self.moderated_at_once + 1])
        if len(keys) > self.moderated_at_once:
            words = gettext("Nothing changed: choose %(count)s at most.")
            self.message_user(request, words % {"count": self.moderated_at_once}, messages.ERROR)
            return None
        return redirect(self._moderate_address(*keys))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The form of a row, with a link for moderators."""
        context = extra_context or {}
        if self.has_decide_permission(request):
            context = context | {"moderate": self._moderate_address(object_id)}
        return super().change_view(request, object_id, form_url, context)

    def _moderate_address(self, *keys: Any) -> str:
        return f"{reverse(self.decide_page)}?{self.moderated_as}={','.join(map(str, keys))}"


# --- Deliveries ------------------------------------------------------------------------------------------
class ParkedFilter(admin.SimpleListFilter):
    """A filter of deliveries: given up, or in progress."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("parked", _("given up")), ("pending", _("in progress"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[Any]:
        """The chosen deliveries."""
        match self.value():
            case "parked":
                queryset = queryset.parked()
            case "pending":
                queryset = queryset.pending()
        return queryset  # type: ignore[no-any-return]


class DeliveryAdmin(ReadOnlyAdmin, ActingAdmin):
    """Incomplete deliveries, with a retry."""

    fan_out: ClassVar[HintTask[..., Any]]
    """The task that delivers a row by its key."""
    list_filter = (ParkedFilter,)
    actions = ("retry",)

    def waiting(self, request: HttpRequest) -> QuerySet[Any]:
        """Deliveries that were given up."""
        return self.model._default_manager.parked()  # type: ignore[no-any-return]

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Whether the user may retry deliveries."""
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    @admin.action(description=_("Retry delivery"), permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Retry the chosen deliveries."""
        rows = self.chosen(request, queryset)
        started = deliveries.retry(
            queryset.model._default_manager.filter(pk__in=[row.pk for row in rows]), self.fan_out
        )
        for row in rows:
            self.log_change(request, row, gettext_noop("Retried delivery."))
        if started:
            self.message_user(
                request,
                sentence_with_count(
                    lambda n: ngettext("Retrying %(count)s delivery.", "Retrying %(count)s deliveries.", n),
                    started,
                ),
                messages.SUCCESS,
            )
        elif rows:
            self.message_user(request, gettext("Nothing changed: these deliveries are complete."), messages.WARNING)
