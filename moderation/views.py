from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe

from accounts import review
from accounts.about.site import current
from accounts.access import member_form
from accounts.models import User
from items.finding import item_row
from items.hydrate import hydrate
from items.pages.cards import Cards
from items.pages.open_pages import OpenPage, open_page
from moderation import reports
from moderation.figures import yearly
from moderation.forms import ReportForm
from relations.visibility import visible_user
from web.pages import INVALID, PageRequest, limited, next_page, show
from web.refusals import MissingError


@member_form
@limited("report")
def report(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
    """Report an item, or a repost's original."""
    item = item_row(item_id, reader)
    shown = hydrate([item.repost_of_id or item.pk], reader)[0]
    subject = {"item": shown, "content": Cards(request.user).content(shown)}
    return _reported(request, subject, lambda **fields: reports.report(item=item, reporter=reader, **fields))


@member_form
@limited("report")
def report_session(request: PageRequest, reader: User, session_id: int) -> HttpResponse:
    """Report a live session."""
    session = review.sessions.seen(session_id, reader)
    if session is None:
        raise MissingError
    return _reported(
        request,
        {"session": session},
        lambda **fields: reports.report_session(session_id=session_id, reporter=reader, **fields),
        reverse("live"),
    )


@member_form
@limited("report")
def report_account(request: PageRequest, reader: User, username: str) -> HttpResponse:
    account = visible_user(username, reader)
    return _reported(
        request,
        {"account": account},
        lambda **fields: reports.report_account(account=account, reporter=reader, **fields),
        reverse("profile", args=[account.username]),
    )


def _reported(
    request: PageRequest, subject: dict[str, Any], report: Callable[..., bool], after: str = ""
) -> HttpResponse:
    form = ReportForm(request.POST if request.method == "POST" else None)
    context = {"session": None, "item": None, "account": None, "form": form, "next": next_page(request) or after}
    context |= subject
    if form.is_valid():
        try:
            report(**form.cleaned_data)
        except reports.OwnItemError:
            pass  # the page says so itself
        else:
            return show(request, "moderation/reported.html", context)
    return show(request, "moderation/report.html", context, status=INVALID if form.errors else 200)


@require_safe
def figures(request: PageRequest) -> HttpResponseBase:
    """Figures of moderation by year, if the admin publishes them."""
    if not current().shows_figures:
        raise Http404
    return _open_figures(request)


@open_page
def _open_figures(request: PageRequest) -> OpenPage:
    return OpenPage(show(request, "moderation/figures.html", {"years": yearly()}))
