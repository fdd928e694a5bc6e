"""The pages of notifications, and the badge that counts the unread."""

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from accounts.access import signed_in
from accounts.models import User
from notifications import actions
from notifications.feed import notifications_page, unread_count
from web.pages import PageRequest, fetches_ahead, position, show


@require_safe
@signed_in
def everything(request: PageRequest, reader: User) -> HttpResponse:
    """The page of acts of others that concern the reader.

    Opening its beginning marks what it shows, and all before, as read.
    """
    last_id = position(request)
    page = notifications_page(reader, last_id=last_id)
    if last_id is None and page.items and request.method == "GET" and not fetches_ahead(request):
        actions.mark_read(user=reader, up_to=page.newest)
    context = {"page": page, "is_first": last_id is None, "tab": "everything"}
    return show(request, "notifications/notifications.html", context, part="notifications/_more.html")


@require_safe
@signed_in
def conversations(request: PageRequest, reader: User) -> HttpResponse:
    """The replies and mentions among them. The other entries stay unread, so nothing is marked here."""
    last_id = position(request)
    page = notifications_page(reader, last_id=last_id, conversations=True)
    context = {"page": page, "is_first": last_id is None, "tab": "conversations"}
    return show(request, "notifications/notifications.html", context, part="notifications/_more.html")


@require_safe
@signed_in
def badge(request: PageRequest, reader: User) -> HttpResponse:
    """How many are unread, for the navigation of an open page."""
    return show(request, "notifications/_unread.html", {"unread": unread_count(reader)})
