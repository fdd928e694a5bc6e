from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django_htmx.http import trigger_client_event

from accounts.access import member_form, member_page
from accounts.models import User
from notifications import actions
from notifications.feed import NotificationPage, new_count, notifications_page
from notifications.forms import KindsForm
from notifications.models import CHOOSABLE, GROUPS, Silenced
from notifications.notices import notices
from web.pages import INVALID, PageRequest, is_prefetch, show
from web.rest import position

FILTERS = {
    "likes": gettext_lazy("Likes"),
    "reposts": gettext_lazy("Reposts"),
    "quotes": gettext_lazy("Quotes"),
    "follows": pgettext_lazy("notifications", "Follows"),
    "posts": gettext_lazy("Posts"),
    "live": pgettext_lazy("timeline", "Live"),
    "polls": gettext_lazy("Polls"),
}
"""The filters of the page, beside its tabs."""


@member_page
def all_notifications(request: PageRequest, reader: User) -> HttpResponse:
    """The reader's notifications. The first page marks all as read."""
    last_id = position(request)
    page = notifications_page(reader, last_id=last_id)
    if last_id is None and page.items and request.method == "GET" and not is_prefetch(request):
        actions.mark_read(user=reader, up_to=page.newest)
    return _page_response(request, reader, page, "")


@member_page
def conversations(request: PageRequest, reader: User) -> HttpResponse:
    """Only replies and mentions. Marks nothing as read."""
    return _group_response(request, reader, "conversations")


@member_page
def of_kind(request: PageRequest, reader: User, group: str) -> HttpResponse:
    """Only notifications of some kinds. Marks nothing as read."""
    return _group_response(request, reader, group)


def _group_response(request: PageRequest, reader: User, group: str) -> HttpResponse:
    page = notifications_page(reader, last_id=position(request), group=group)
    return _page_response(request, reader, page, group)


def _page_response(request: PageRequest, reader: User, page: NotificationPage, group: str) -> HttpResponse:
    context = {
        "page": page,
        "notices": notices(page.items, reader),
        "is_first": position(request) is None,
        "group": group,
        "groups": FILTERS,
        "since_id": page.newest or "",
        "poll_seconds": settings.HOME_POLL_SECONDS,
    }
    return show(request, "notifications/notifications.html", context, part="notifications/_more.html")


@member_page
def badge(request: PageRequest, reader: User) -> HttpResponse:
    """What waits, for navigation."""
    return show(request, "notifications/_badges.html")


@member_page
def news(request: PageRequest, reader: User) -> HttpResponse:
    """The number of new entries. 204 if the page `shows` it."""
    since_id = position(request, "since_id") or 0
    group = request.GET.get("tab", "")
    group = group if group in GROUPS else ""
    count, capped = new_count(reader, since_id=since_id, group=group)
    if request.GET.get("shows") == str(count):
        return HttpResponse(status=204)
    context = {
        "count": count,
        "capped": capped,
        "since_id": since_id or "",
        "group": group,
        "poll_seconds": settings.HOME_POLL_SECONDS,
    }
    response = show(request, "notifications/_news.html", context)
    trigger_client_event(response, "notified")
    return response


@member_form
def choose_kinds(request: PageRequest, reader: User) -> HttpResponse:
    """Choose the kinds of notifications."""
    silenced = Silenced.objects.filter(user=reader).values_list("kinds", flat=True).first() or []
    wanted = [kind.value for kind in CHOOSABLE if kind not in silenced]
    form = KindsForm(request.POST if request.method == "POST" else None, initial={"kinds": wanted})
    if form.is_valid():
        actions.silence(user=reader, kinds=form.silenced())
        messages.success(request, _("Saved."))
        return redirect("settings-notifications")
    return show(request, "notifications/kinds.html", {"form": form}, status=INVALID if form.errors else 200)
