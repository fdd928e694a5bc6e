from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access import member_form, member_page
from accounts.models import User
from live import actions, covers, hosting
from live.actions import WrongStateError
from live.forms import SessionForm
from live.hydrate import own_session, visible_session
from live.models import LiveSession, Review, State
from live.views import answer_card, poll_context, wrong_state_message
from media.offering import reports_blocked_media
from storage import ids
from web.pages import INVALID, PageRequest, limited, next_page, redirect_to, show
from web.rest import PAGE, position
from web.uploads import one_medium_bytes, takes_files

TWICE = timedelta(minutes=10)
"""An equal session planned this recently is the same form, sent twice."""
HELD = gettext_lazy("Your session is in review. Others see it once it's approved.")


def _remove_replay(*, session: LiveSession, now: datetime) -> None:
    if session.state != State.REPLAY:
        raise WrongStateError(session.state)
    actions.hide(session=session, now=now)


class HostAction(NamedTuple):
    """A host's action."""

    act: Callable[..., object]
    leads_to: State | None
    said: Any
    asks: Any
    button: Any


STEPS = {
    "start": HostAction(
        actions.start, State.LIVE, gettext_lazy("You're live."), gettext_lazy("Go live now?"), gettext_lazy("Go live")
    ),
    "end": HostAction(
        actions.end,
        State.REPLAY,
        gettext_lazy("The session has ended."),
        gettext_lazy("End this session?"),
        gettext_lazy("End session"),
    ),
    "cancel": HostAction(
        actions.cancel,
        State.CANCELLED,
        gettext_lazy("Session cancelled."),
        gettext_lazy("Cancel this session?"),
        gettext_lazy("Cancel session"),
    ),
    "remove": HostAction(
        _remove_replay,
        None,
        gettext_lazy("Replay removed."),
        gettext_lazy("Remove this replay? After that, only you can see it."),
        gettext_lazy("Remove replay"),
    ),
}


@member_page
def own_sessions(request: PageRequest, reader: User) -> HttpResponse:
    """The reader's sessions: live and planned first."""
    last_id = position(request)
    page = hosting.past_of(reader, reader, last_id=last_id, limit=PAGE)
    context: dict[str, Any] = {"page": page, "is_first": last_id is None, "look": "own", "following": ""}
    if last_id is None:
        context["scheduled"] = hosting.scheduled_of(reader, reader, limit=settings.LIVE_SCHEDULED_CAP)
    return show(request, "live/own.html", context | poll_context(), part="live/_more.html")


@member_form
@limited("live")
@takes_files(one_medium_bytes)
def plan(request: PageRequest, reader: User) -> HttpResponse:
    """Plan a session."""
    now = timezone.now()
    form = SessionForm(request.POST or None, request.FILES or None, now=now)
    if form.is_bound:
        form.full_clean()
        form.upload_cover(reader)
    if form.is_valid():
        try:
            session = _plan_once(reader, form.fields_to_save, now)
        except ValidationError as error:
            _refuse(form, error)
        except actions.TooManySessionsError:
            form.add_error(None, _("You've reached the limit of scheduled sessions. Cancel one first."))
        else:
            if session.review:
                messages.info(request, HELD)
            else:
                messages.success(request, _("Scheduled. Your followers can see it now."))
            return redirect_to(request, reverse("live-session", args=[session.pk]))
    return show(request, "live/form.html", {"form": form, "session": None}, status=INVALID if form.errors else 200)


def _refuse(form: SessionForm, error: ValidationError) -> None:
    fields = dict(error.error_dict) if hasattr(error, "error_dict") else {}
    if covers.FIELD in fields:
        form.add_error("picture", fields.pop(covers.FIELD))
        form.discard_cover()
        error = ValidationError(fields)
    if fields or not hasattr(error, "error_dict"):
        form.add_error(None, error)


@reports_blocked_media
@transaction.atomic
def _plan_once(host: User, fields: dict[str, Any], now: datetime) -> LiveSession:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('live.plan', %s))", [host.pk])
    same = LiveSession.objects.filter(
        host=host,
        title=fields["title"],
        starts_at=fields["starts_at"],
        state=State.UPCOMING,
        pk__gt=ids.compose(now - TWICE, 0),
    )
    return same.first() or actions.create(host=host, now=now, **fields)


@member_form
@limited("live")
@takes_files(one_medium_bytes)
def edit(request: PageRequest, reader: User, session_id: int) -> HttpResponse:
    """Change your own session."""
    session, now = own_session(session_id, reader), timezone.now()
    form = SessionForm(request.POST or None, request.FILES or None, session=session, now=now)
    if form.is_bound:
        form.full_clean()
        form.upload_cover(reader)
    if form.is_valid():
        # Check only changed fields: an untouched time may have passed, or have seconds.
        changed = {*form.changed_data, "cover_id"}
        changes = {name: value for name, value in form.fields_to_save.items() if name in changed}
        try:
            session = actions.edit(session=session, now=now, **changes)
        except ValidationError as error:
            _refuse(form, error)
        except WrongStateError as error:
            form.add_error(None, wrong_state_message(error))
        else:
            form.describe_cover(reader)
            if session.review == Review.IN_REVIEW:
                messages.info(request, HELD)
            else:
                messages.success(request, _("Saved."))
            return redirect_to(request, reverse("live-session", args=[session_id]))
    context = {"form": form, "session": visible_session(session_id, reader)}
    return show(request, "live/form.html", context, status=INVALID if form.errors else 200)


@member_form
@limited("live")
def apply_host_action(request: PageRequest, reader: User, session_id: int, verb: str) -> HttpResponse:
    """Start, end, cancel or remove. Repeating counts as done."""
    step = STEPS.get(verb)
    if step is None:
        raise Http404
    session = own_session(session_id, reader)
    if request.method != "POST":
        body = visible_session(session_id, reader)
        return show(
            request, "live/confirm.html", {"session": body, "step": step, "verb": verb, "next": next_page(request)}
        )
    more = {"keeps_short": "replay" in request.POST} if verb == "end" else {}
    said = str(step.said)
    if verb == "start" and session.review == Review.IN_REVIEW:
        said = _("You're live. Others see it once it's approved.")
    try:
        done = step.act(session=session, now=timezone.now(), **more)
    except WrongStateError as error:
        if error.state != step.leads_to:
            return answer_card(request, reader, session_id, problem=wrong_state_message(error))
    else:
        if verb == "end" and isinstance(done, LiveSession) and done.hidden_at and not done.review:
            said = _("Session ended. It was shorter than a minute, so there is no replay.")
    return answer_card(request, reader, session_id, said=said)
