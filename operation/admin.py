"""The dashboard: how far the workers are behind, what serves the pages, and how it was over the last hours. And users,
with what only the room of the timelines knows of them.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import JSONObject
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.big_v_admin import Progress
from accounts.models import Level, User
from items.models import Status, Visibility
from moderation.user_admin import ModeratedUserAdmin
from operation.models import Sample
from operation.plots import NOTHING, Plot, Step, Text, plot, quantile, stack, steps
from timeline.explain import explain_home
from timeline.models import Backfill, Delivery
from web.admin import ReadOnlyAdmin
from web.rest import parse_id

HOURS = (1, 6, 24, 48)
STALE = timedelta(minutes=3)
"""Without a sample for so long beat or the workers do not run."""


@admin.register(Sample)
class SampleAdmin(ReadOnlyAdmin):
    """The samples as plots; they cannot be written by hand."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The page; `?hours=` is how far it looks back."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        asked = request.GET.get("hours", "")
        hours = int(asked) if asked in map(str, HOURS) else HOURS[1]
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("Dashboard"),
            "hours": hours,
            "choices": HOURS,
            **dashboard(hours),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/operation/sample/change_list.html", context)


def dashboard(hours: int) -> dict[str, Any]:
    """The template's context for the last `hours`: tiles, plots, and the number of users of each level."""
    now = timezone.now()
    samples = list(
        Sample.objects.filter(at__gt=now - timedelta(hours=hours)).order_by("at").values_list("at", "figures")
    )
    taken = steps(samples)
    latest = samples[-1][1] if samples else {}
    return {
        "is_stale": bool(samples) and samples[-1][0] < now - STALE,
        "latest_at": samples[-1][0] if samples else None,
        "tiles": tiles(latest, taken),
        "plots": plots(taken) if taken else [],
        "levels": levels(latest),
        "parked": Delivery.objects.parked().count(),
    }


EXPLAINING = ("relations.view_follow", "relations.view_block", "relations.view_mute", "items.view_item")
"""A home is explained to staff who may see these, for reasons tell of them, and verdicts of any item."""


@admin.register(User)
class WatchedUserAdmin(ModeratedUserAdmin):
    """Users with how far their demotion is."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """Users with the progress of their running demotion."""
        running = Backfill.objects.filter(sender=OuterRef("pk"), finished_at=None, cancelled_at=None)
        progress = running.values(progress=JSONObject(done="done", followers="followers"))
        users: QuerySet[User] = super().get_queryset(request)
        return users.annotate(demotion=Subquery(progress))

    def progress(self, user: Any) -> Progress | None:
        """The progress of the user's demotion; None without one."""
        return Progress(**user.demotion) if user.demotion else None

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """The form, with a link to the explained home for staff who may read it."""
        context |= {"may_explain": request.user.has_perms(EXPLAINING)}
        return super().render_change_form(request, context, *args, **kwargs)

    def get_urls(self) -> list[URLPattern]:
        """The admin's own addresses, and that of the explained home."""
        view = self.admin_site.admin_view(self.home_view)
        return [path("<int:user_id>/home/", view, name="accounts_user_home"), *super().get_urls()]

    def home_view(self, request: HttpRequest, user_id: int) -> HttpResponse:
        """Explains the user's home, and the item `?item=` in it (timeline.explain). Changes nothing."""
        user = self.get_object(request, str(user_id))
        if not (self.has_view_permission(request, user) and request.user.has_perms(EXPLAINING)):
            raise PermissionDenied
        if user is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, str(user_id))  # type: ignore[attr-defined, no-any-return]
        asked = request.GET.get("item", "").strip()
        item_id = parse_id(asked) if asked else None
        found = explain_home(user, item_id=item_id)
        item = found.item
        context = self.admin_site.each_context(request) | {
            "title": _("The home timeline of @%(name)s") % {"name": user.username},
            "opts": self.opts,
            "reader": user,
            "asked": asked[:40],
            "problem": _("That is no id of an item.") if asked and item_id is None else "",
            "found": found,
            "page": found.next_page,
            "life": seconds(found.inbox.seconds_to_live or 0),
            "status": Status(item.status).label if item and item.status else "",
            "visibility": Visibility(item.visibility).label if item and item.visibility else "",
        }
        return TemplateResponse(request, "admin/accounts/user/home.html", context)


# --- Dashboard -------------------------------------------------------------------------------------------
def tiles(latest: dict[str, Any], taken: Sequence[Step]) -> list[dict[str, Any]]:
    """Single figures: of now, or of all the time that is shown.

    `is_bad` marks a figure that an operator should look at.
    """
    if not latest:
        return []
    lag = _summed(step.growths("lag") for step in taken)
    pages = _summed(step.growths("pages") for step in taken)
    differences = sum(_summed(step.growths("differences") for step in taken).values())
    readers = sum(step.growth("readers") for step in taken)
    total = sum(pages.values())
    hits = sum(count for sources, count in pages.items() if "sql" not in sources)
    oldest, parked = float(latest.get("oldest", 0)), int(latest.get("parked", 0))
    waiting = sum(latest.get("queues", {}).values())
    return [
        {"name": _("Lag, median"), "value": _or_none(quantile(lag, 0.5), seconds)},
        {"name": _("Lag, p99"), "value": _or_none(quantile(lag, 0.99), seconds)},
        {"name": _("Oldest pending"), "value": seconds(oldest), "is_bad": oldest > 60},
        {"name": _("Pending deliveries"), "value": number(latest.get("pending", 0))},
        {"name": _("Parked deliveries"), "value": number(parked), "is_bad": parked > 0},
        {"name": _("Messages in queues"), "value": number(waiting)},
        {"name": _("Pages from windows"), "value": percent(hits / total) if total else NOTHING},
        {
            "name": _("Oracle differences"),
            "value": number(differences),
            "is_bad": differences > 0,
            "note": ngettext("of %(count)s reader", "of %(count)s readers", int(readers)) % {"count": number(readers)},
        },
        {"name": _("Open streams"), "value": number(latest.get("streams", 0))},
        {"name": _("Big-Vs"), "value": number(latest.get("big_vs", 0))},
    ]


def plots(taken: Sequence[Step]) -> list[Plot]:
    """The dashboard's plots of these steps, in order."""
    lags = [step.growths("lag") for step in taken]
    queues = sorted({queue for step in taken for queue in step.now.get("queues", {})})
    return [
        plot(
            _("Lag: from publishing to the inboxes"),
            taken,
            [
                (_("median"), [quantile(lag, 0.5) for lag in lags]),
                (_("p99"), [quantile(lag, 0.99) for lag in lags]),
            ],
            seconds,
        ),
        plot(
            _("Deliveries that wait"),
            taken,
            [
                (_("pending"), [step.value("pending") for step in taken]),
                (_("parked"), [step.value("parked") for step in taken]),
            ],
            number,
        ),
        plot(
            _("Messages in queues"),
            taken,
            [(queue, [_number(step.now.get("queues", {}).get(queue)) for step in taken]) for queue in queues],
            number,
        ),
        stack(_("Home pages by their slowest source"), taken, shares(taken), percent),
        plot(
            _("Inbox entries a second"),
            taken,
            [(_("entries"), [step.growth("entries") / step.seconds for step in taken])],
            number,
        ),
        plot(
            _("Requests a second"),
            taken,
            [
                (_("all"), [step.growth("requests") / step.seconds for step in taken]),
                (_("failed (5xx)"), [step.growth("errors") / step.seconds for step in taken]),
            ],
            number,
        ),
    ]


def shares(taken: Sequence[Step]) -> list[tuple[Text, list[float | None]]]:
    """The share of the pages of each step, by source, that had it and none of those below it in the list."""
    names = {"inbox": _("inbox"), "outbox": _("outbox"), "pending": _("pending"), "sql": _("PostgreSQL")}
    order = list(names)
    values: dict[str, list[float | None]] = {source: [] for source in order}
    for step in taken:
        pages = step.growths("pages")
        total = sum(pages.values())
        slowest = dict.fromkeys(order, 0.0)
        for sources, count in pages.items():
            parts = [source for source in order if source in sources.split(",")]
            slowest[parts[-1] if parts else "inbox"] += count
        for source in order:
            values[source].append(slowest[source] / total if total else None)
    return [(names[source], values[source]) for source in order]


def levels(latest: dict[str, Any]) -> list[dict[str, Any]]:
    """Users by level, the most active first."""
    found = latest.get("levels", {})
    total = sum(found.values())
    names = {
        Level.DAILY: _("seen within a day"),
        Level.WEEKLY: _("within a week"),
        Level.MONTHLY: _("within a month"),
        Level.DORMANT: _("dormant"),
    }
    return [
        {
            "level": level.value,
            "name": name,
            "users": number(found.get(str(level.value), 0)),
            "share": round(100 * found.get(str(level.value), 0) / total),
        }
        for level, name in names.items()
        if total
    ]


# --- Figures for people ----------------------------------------------------------------------------------
def number(value: float) -> str:
    """A number for people: whole, or with one decimal below 10."""
    rounded = round(value) if value >= 10 or value == int(value) else round(value, 1)
    return number_format(rounded, use_l10n=True, force_grouping=True)


def percent(value: float) -> str:
    """A share (0 to 1) as whole percent."""
    return f"{round(100 * value)} %"


def seconds(value: float) -> str:
    """A time for people, in ms, s, min or h."""
    if value == 0:
        return "0"
    if value < 1:
        return _("%(count)s ms") % {"count": number(round(1000 * value))}
    if value < 120:
        return _("%(count)s s") % {"count": number(value)}
    if value < 7200:
        return _("%(count)s min") % {"count": number(value / 60)}
    return _("%(count)s h") % {"count": number(value / 3600)}


def _or_none(value: float | None, write: Any) -> str:
    return NOTHING if value is None else str(write(value))


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _summed(parts: Iterable[dict[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for label, value in part.items():
            total[label] = total.get(label, 0.0) + value
    return total
