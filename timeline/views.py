"""The home page: composer, timeline, and the pill that says how many posts came since."""

from django.conf import settings
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from accounts.access import signed_in
from accounts.models import User
from feedsite.pages import PageRequest, position, show
from feedsite.rest import PAGE
from items.forms import ItemForm
from relations.suggestions import suggestions
from timeline.home import home_page, new_count


@require_safe
@signed_in
def home(request: PageRequest, reader: User) -> HttpResponse:
    """What the reader and whom they follow published, newest first.

    htmx asks for a following page by its `last_id`, and without one for the beginning again.
    """
    last_id = position(request)
    page = home_page(reader, last_id=last_id, limit=PAGE)
    first = last_id is None
    context = {
        "page": page,
        "is_first": first,
        "since_id": page.items[0].id if first and page.items else "",
        "poll_seconds": settings.HOME_POLL_SECONDS,
        "form": ItemForm.fresh(),
        "suggestions": suggestions(reader) if first and not reader.following_count else [],
    }
    part = "timeline/_beginning.html" if first else "items/_more.html"
    response = show(request, "timeline/home.html", context, part=part)
    response["X-Feed-Source"] = ",".join(page.sources)
    return response


@require_safe
@signed_in
def news(request: PageRequest, reader: User) -> HttpResponse:
    """How many posts came since the top of an open page; 204 while it is as many as that page `shows`."""
    since_id = position(request, "since_id")
    count, capped = new_count(reader, since_id=since_id or 0)
    if request.GET.get("shows") == str(count):
        return HttpResponse(status=204)
    context = {
        "count": count,
        "capped": capped,
        "since_id": since_id or "",
        "poll_seconds": settings.HOME_POLL_SECONDS,
    }
    return show(request, "timeline/_news.html", context)
