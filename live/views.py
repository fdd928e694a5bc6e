"""Pages of the feed and of one session. When one changes, only its card is fetched again, with its state in the list
(`as`).
"""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe
from django_htmx.http import retarget, trigger_client_event

from accounts.access import member_act, member_page
from accounts.models import User
from live import actions, hosting
from live.actions import WrongStateError
from live.feed import live_page
from live.feed_api import store_after_response
from live.hydrate import SessionBody, find_session, visible_session
from live.models import LiveSession, State
from live.snapshot import SnapshotExpiredError
from live.walk import LivePage
from relations.suggestions import suggestions
from relations.visibility import profile_relation
from storage import ids
from web.pages import INVALID, PageRequest, redirect_next, show, show_toast, wants_part
from web.rest import PAGE, limit, parse_id, position, single_parameter

LOOKS = ("card", "whole", "own", "strip")
SHOWN = 200
"""Maximum sessions of an open page to check for changes."""
BEFORE = timedelta(seconds=5)
"""A session that started this shortly before the page was made may be missing on it."""


# --- The feed --------------------------------------------------------------------------------------------
@member_page
def live(request: PageRequest, reader: User) -> HttpResponse:
    """The feed. An expired walk starts again with a notice."""
    now = timezone.now()
    last_id, size, session_id = (
        position(request),
        limit(request, "page_size"),
        single_parameter(request.GET, "session_id") or None,
    )
    try:
        page = live_page(reader, session_id=session_id, last_id=last_id, page_size=size, now=now)
    except SnapshotExpiredError:
        return _restart_response(request, reader, size, now)
    if last_id is None:
        return _page_response(request, page, size, _first_page_context(reader, page, now), part="live/_beginning.html")
    return _page_response(request, page, size, {"is_first": False}, part="live/_more.html")


def _restart_response(request: PageRequest, reader: User, size: int, now: datetime) -> HttpResponse:
    notice = _("This list has changed. You're back at the top.")
    if not wants_part(request):
        messages.info(request, notice)
        return redirect("live")
    page = live_page(reader, session_id=None, last_id=None, page_size=size, now=now)
    response = _page_response(request, page, size, _first_page_context(reader, page, now), part="live/_beginning.html")
    show_toast(response, notice)
    response["HX-Reswap"] = "innerHTML show:window:top"
    return retarget(response, "#live")


def _first_page_context(reader: User, page: LivePage, now: datetime) -> dict[str, Any]:
    since = now - BEFORE
    recent = [one.id for one in page.items if one.started_at and one.shown_as == State.LIVE and one.started_at > since]
    context = {
        "is_first": True,
        "since": _milliseconds(since),
        "known": ",".join(recent),
        "count": 0,
    }
    if not page.items and not page.has_more:
        context["hosts"] = hosting.hosts_to_follow(reader)
        context["suggestions"] = [] if context["hosts"] or reader.following_count else suggestions(reader)
    return context


def _page_response(
    request: PageRequest, page: LivePage, size: int, context: dict[str, Any], *, part: str
) -> HttpResponse:
    response = show(
        request,
        "live/live.html",
        {"page": page, "look": "card", "following": _next_page_query(page, size)} | context | poll_context(),
        part=part,
    )
    response["X-Feed-Source"] = ",".join(page.sources)
    return store_after_response(response, page)


def _next_page_query(page: LivePage, size: int) -> str:
    named = {"session_id": page.session_id or "", "page_size": str(size) if size != PAGE else ""}
    query = urlencode({name: value for name, value in named.items() if value})
    return f"{query}&" if query else ""


@require_safe
def news(request: PageRequest) -> HttpResponse:
    """How many other sessions went live, and which shown ones differ. 204 without news."""
    since, known = position(request, "since"), single_parameter(request.GET, "known")
    shown = _versions(single_parameter(request.GET, "has"))
    changed = hosting.changed_among(shown, request.user)
    count, capped = 0, False
    if since and isinstance(request.user, User):
        at = datetime.fromtimestamp(min(since, ids.MAX_ID >> ids.SEQUENCE_BITS) / 1000, UTC)
        count, capped = hosting.started_since(request.user, at, known=[*_ids(known)])
    if not changed and single_parameter(request.GET, "shows") == str(count):
        return HttpResponse(status=204)
    context = {"count": count, "capped": capped, "since": since or "", "known": known}
    response = show(request, "live/_news.html", context | poll_context())
    if changed:
        trigger_client_event(response, "sessions", {str(pk): version for pk, version in changed.items()})
    return response


def poll_context() -> dict[str, Any]:
    """How often an open page asks for news."""
    return {"poll_seconds": settings.HOME_POLL_SECONDS}


# --- Parameters ------------------------------------------------------------------------------------------
def _ids(text: str) -> list[int]:
    found = (parse_id(part) for part in text[: SHOWN * 20].split(","))
    return [one for one in found if one is not None][:SHOWN]


def _versions(text: str) -> dict[int, int]:
    pairs = [part.partition(":")[::2] for part in text[: SHOWN * 30].split(",")]
    known = ((parse_id(pk), parse_id(version)) for pk, version in pairs)
    return dict([(pk, version) for pk, version in known if pk is not None and version is not None][:SHOWN])


def _card_options(asked: Any) -> tuple[str, str | None]:
    look, shown_as = asked.get("look", ""), asked.get("as", "")
    return look if look in LOOKS else "card", shown_as if shown_as in State.values else None


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


WORDS = {
    State.UPCOMING: gettext_lazy("The session hasn't started yet."),
    State.LIVE: gettext_lazy("The session is live."),
    State.REPLAY: gettext_lazy("The session has ended."),
    State.CANCELLED: gettext_lazy("Session cancelled."),
    State.MISSED: gettext_lazy("The session never started."),
}


def wrong_state_message(error: WrongStateError) -> str:
    """Why a step is no longer possible."""
    if isinstance(error, actions.RejectedError):
        return _("Moderators removed this session, so others can't see it. Edit it to have it reviewed again.")
    return _("You can't do this anymore. %(state)s") % {"state": WORDS[error.state]}


# --- One session -----------------------------------------------------------------------------------------
@require_safe
def show_session(request: PageRequest, session_id: int) -> HttpResponse:
    """The page, or only the card for a list."""
    look, shown_as = _card_options(request.GET)
    session = visible_session(session_id, request.user, shown_as)
    if wants_part(request):
        return show(request, "live/_session.html", _card_context(session, look, request.user))
    return show(request, "live/session.html", _card_context(session, "whole", request.user) | poll_context())


def _card_context(session: SessionBody, look: str, reader: User | AnonymousUser) -> dict[str, Any]:
    context: dict[str, Any] = {"session": session, "look": look}
    if look == "whole":
        host = User.objects.get(pk=session.host.id)
        stands = profile_relation(host, reader)
        context |= {"person": host, "following": stands.following, "requested": stands.requested}
        context["coming"] = hosting.reminder_count(session)
    return context


@member_act
def remind(request: PageRequest, reader: User, session_id: int) -> HttpResponse:
    """Add a reminder. Repeating changes nothing."""
    visible_session(session_id, reader)
    try:
        actions.remind(user=reader, session=LiveSession(pk=session_id))
    except WrongStateError as error:
        return answer_card(request, reader, session_id, problem=wrong_state_message(error))
    return answer_card(request, reader, session_id, notice=_("We'll notify you when it starts."))


@member_act
def forget_reminder(request: PageRequest, reader: User, session_id: int) -> HttpResponse:
    """Remove the reminder. Repeating changes nothing."""
    gone = session_id <= ids.MAX_ID and actions.forget_reminder(user=reader, session=LiveSession(pk=session_id))
    if find_session(session_id, reader) is None:
        if not gone:
            raise Http404
        return HttpResponse() if wants_part(request) else redirect_next(request, "live")
    return answer_card(request, reader, session_id, notice=_("Reminder off."))


def answer_card(
    request: PageRequest, reader: User, session_id: int, *, said: str = "", notice: str = "", problem: str = ""
) -> HttpResponse:
    """The current card with a toast, or a redirect. With a `notice` the button gets the focus."""
    if wants_part(request):
        look, shown_as = _card_options(request.POST)
        session = visible_session(session_id, reader, shown_as)
        context = _card_context(session, look, reader) | {"is_noticed": bool(notice)}
        response = show(request, "live/_session.html", context, status=INVALID if problem else 200)
        return show_toast(response, problem or said or notice, is_problem=bool(problem))
    if problem:
        messages.error(request, problem)
    else:
        messages.success(request, said or notice)
    return redirect_next(request, "live-session", session_id)
