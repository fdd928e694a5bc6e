from django.conf import settings
from django.http import HttpResponse
from django.urls import reverse

from accounts.access import member_page
from accounts.models import User
from relations.lists import own_list
from timeline.late import late_arrivals, with_late
from timeline.lists import list_new_count, list_page
from timeline.position import reading_state
from timeline.senders import Scope
from timeline.views import cards_of
from web.pages import PageRequest, show
from web.rest import PAGE, position


@member_page
def show_list(request: PageRequest, reader: User, list_id: int) -> HttpResponse:
    """A list's posts, newest first."""
    listed, last_id, late = own_list(reader, list_id), position(request), position(request, "late")
    now = reading_state(reader).now if last_id is None else ""
    page = list_page(reader, listed.id, last_id=last_id, limit=PAGE)
    arrived = late_arrivals(Scope(reader.pk, listed.id), page.items, since=late) if last_id is None else []
    context = {
        "list": listed,
        "page": page,
        "cards": cards_of(request, page, arrived),
        "is_first": last_id is None,
        "since_id": page.items[0].id if page.items else "",
        "at": now,
    } | _poll_context(listed.id)
    part = "timeline/_list_beginning.html" if last_id is None else "items/_more.html"
    return show(request, "timeline/list.html", context, part=part)


@member_page
def list_news(request: PageRequest, reader: User, list_id: int) -> HttpResponse:
    """The number of new posts in a list, with late arrivals. 204 if the page already `shows` it."""
    listed, since_id, at = own_list(reader, list_id), position(request, "since_id"), position(request, "at")
    new = list_new_count(reader, listed.id, since_id=since_id or 0)
    count, capped = with_late(new, Scope(reader.pk, listed.id), since=at, top=since_id)
    if request.GET.get("shows") == str(count):
        return HttpResponse(status=204)
    told = {"count": count, "capped": capped, "since_id": since_id or "", "at": at or ""}
    context = {"list": listed} | told | _poll_context(listed.id)
    return show(request, "timeline/_news.html", context)


def _poll_context(list_id: int) -> dict[str, object]:
    return {
        "of": reverse("list", args=[list_id]),
        "asks": reverse("list-news", args=[list_id]),
        "poll_seconds": settings.HOME_POLL_SECONDS,
    }
