from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django_htmx.http import trigger_client_event

from accounts.access import member_act, member_page
from accounts.actions import edit_preferences
from accounts.models import User
from discover import feedback, recent
from discover.history import recommendation_reason, unwanted_page, viewed_page
from items import actions
from items.finding import item_row
from items.pages.cards import Cards
from items.profiles.profile import find_item
from storage.connections import FeedsUnavailableError
from web.pages import PageRequest, redirect_next, show, show_toast, wants_part, with_undo
from web.rest import position


def _pause(reader: User) -> str:
    edit_preferences(user=reader, keeps_history=False)
    return _("History paused. We no longer remember posts you open.")


def _resume(reader: User) -> str:
    edit_preferences(user=reader, keeps_history=True)
    return _("History is on again.")


def _clear(reader: User) -> str:
    recent.clear(reader.pk)
    return _("History cleared.")


VERBS: dict[str, Callable[[User], str]] = {"pause": _pause, "resume": _resume, "clear": _clear}
"""The history's buttons. Each returns a sentence for the reader."""


@member_page
def history(request: PageRequest, reader: User) -> HttpResponse:
    """The items that the reader opened recently."""
    last_id = position(request)
    context = _viewed_context(request, reader, last_id)
    return show(request, "discover/history.html", context, part="items/_more.html")


def _viewed_context(request: PageRequest, reader: User, last_id: int | None = None) -> dict[str, Any]:
    viewed = viewed_page(reader, last_id=last_id, now=timezone.now())
    cards = Cards(request.user, viewed.page.items if viewed else [])
    return {
        "page": viewed and viewed.page,
        "cards": [cards.one(item, viewed_at=viewed.at[item.id]) for item in viewed.page.items] if viewed else [],
        "is_first": last_id is None,
        "tab": "viewed",
        "kept": settings.RECENT_VIEWS,
    }


@member_page
def unwanted(request: PageRequest, reader: User) -> HttpResponse:
    """The items that the reader does not want."""
    last_id = position(request)
    page = unwanted_page(reader, last_id=last_id)
    cards = Cards(request.user, page.items)
    context = {
        "page": page,
        "cards": [cards.one(item, is_unwanted=True) for item in page.items if not item.is_hidden],
        "is_first": last_id is None,
        "tab": "unwanted",
    }
    return show(request, "discover/unwanted.html", context, part="items/_more.html")


@member_act
def change_history(request: PageRequest, reader: User, verb: str) -> HttpResponse:
    """Pause, resume or clear the history."""
    problem = ""
    try:
        said = VERBS[verb](reader)
    except FeedsUnavailableError:
        said, problem = "", _("That didn't work. Try again in a moment.")
    if wants_part(request):
        response = show(request, "discover/_history.html", _viewed_context(request, reader))
        return show_toast(response, problem or said, is_problem=bool(problem))
    if problem:
        messages.error(request, problem)
    else:
        messages.success(request, said)
    return redirect("history")


# --- Not interested --------------------------------------------------------------------------------------
@member_act
def not_interested(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
    """Never recommend an item again. A line with an undo button replaces its card."""
    item = item_row(item_id, reader)
    feedback.not_interested(user=reader, item=item)
    if wants_part(request):
        return show(request, "discover/_dismissed.html", {"item_id": item.pk})
    undo = reverse("interested", args=[item.pk])
    messages.success(request, with_undo(_("You'll see less like this."), undo))
    return redirect_next(request, "unwanted")


@member_act
def interested(request: PageRequest, reader: User, item_id: int) -> HttpResponse:
    """Undo `not_interested`. The card comes back."""
    item = actions.undo_act(
        user=reader, item_id=item_id, undo=lambda item: feedback.interested_again(user=reader, item=item)
    )
    if wants_part(request):
        shown = find_item(item.pk, reader)
        if shown is None:
            return HttpResponse()
        shown.reason = recommendation_reason(reader, item.pk)
        part = show(request, "items/_item.html", {"card": Cards(request.user).one(shown), "discovering": True})
        return trigger_client_event(part, "restored")
    messages.success(request, _("Undone. We'll recommend posts like this again."))
    return redirect_next(request, "unwanted")
