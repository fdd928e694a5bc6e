"""Writes of live sessions. A bool result says whether anything changed.

Each is one transaction under the lock on the host's row. A wrong or repeated transition changes nothing and raises
WrongStateError. Times have milliseconds, as in lineups.
"""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from accounts import review
from accounts.models import User
from accounts.review import EarlierText, Submission
from accounts.signals import session_held
from items.links import is_link
from live import covers, lineup, reminders
from live.models import SHORT, Host, LiveSession, Review, State
from live.replays import create_delivery
from live.visibility import in_lineup
from media.offering import reports_blocked_media
from storage import events, ids
from storage.connections import fetch
from web.letters import is_blank
from web.refusals import ConflictError

LATE = timedelta(minutes=5)
"""How far in the past a new session may start, because filling in a form takes time."""
AHEAD = timedelta(days=366)
LONGEST_MINUTES = 24 * 60

SCHEDULED = (State.UPCOMING, State.LIVE)
OPEN_TO_EDIT = (State.UPCOMING, State.LIVE, State.REPLAY)
PLAN = frozenset({"starts_at", "automatic", "minutes"})
"""Fields that cannot change after the start."""
WORDING = ("title", "url", "cover_url")
"""Fields that others read. Moderation checks them."""
EARLIER = 1_000
"""The host's sessions of the last hour compared with a new one, at most. No moderation limit is higher."""

NEXT_ID = "SELECT feedsite_next_id()"
RESCHEDULE = f"""
    UPDATE live_host SET version = greatest(version + 1, feedsite_next_id()), scheduled = (
        SELECT count(*) FROM live_livesession s WHERE s.host_id = %(host)s AND {in_lineup("s")})
    WHERE user_id = %(host)s RETURNING version
"""


class WrongStateError(ConflictError):
    """The session's state, `state`, does not allow this."""

    def __init__(self, state: str) -> None:
        self.state = State(state)
        super().__init__(f"The session is {self.state.label.lower()}.")

    def body(self) -> dict[str, Any]:
        """The answer, with the state."""
        return super().body() | {"state": self.state.value}


class RejectedError(WrongStateError):
    sentence = "Moderators rejected the session."


class TooManySessionsError(ConflictError):
    """The host has reached settings.LIVE_SCHEDULED_CAP."""

    sentence = "You've reached the limit of scheduled sessions. Cancel one first."


# --- Planning --------------------------------------------------------------------------------------------
@reports_blocked_media
@transaction.atomic
def create(
    *,
    host: User,
    title: str,
    starts_at: datetime,
    now: datetime,
    url: str = "",
    cover_url: str = "",
    cover_id: int | None = None,
    automatic: bool = False,
    minutes: int = 60,
) -> LiveSession:
    """Plan a session, hidden until approved if moderation has a reason. Raises ValidationError by field, and
    TooManySessionsError.
    """
    session = LiveSession(
        host=host,
        title=title,
        url=url,
        cover_url=cover_url,
        starts_at=_truncate_to_milliseconds(starts_at),
        automatic=automatic,
        minutes=minutes,
        modified_at=now,
        worded_at=now,
    )
    _check_fields(session, {*WORDING, *PLAN}, now)
    _lock_host(host.pk, is_new=True)
    if LiveSession.objects.filter(host=host, state__in=SCHEDULED).count() >= settings.LIVE_SCHEDULED_CAP:
        raise TooManySessionsError
    cover = covers.claim_picture(host.pk, cover_id) if cover_id is not None else None
    covers.copy_facts(session, cover)
    if reasons := _hold_reasons(session, now):
        session.hidden_at, session.review = now, Review.IN_REVIEW
    session.save(force_insert=True)
    if cover is not None:
        covers.set_cover(session, cover)
    _announce_change(session, was_hidden=bool(reasons), moves=not reasons)
    if reasons:
        _send_session_held(session, reasons)
    return session


@reports_blocked_media
@transaction.atomic
def edit(*, session: LiveSession, now: datetime, **changes: Any) -> LiveSession:
    """Change a session; before the start also its plan. New words may hold it, and always hold a rejected one. A young
    account cannot add links to a visible one. Raises ValidationError by field.
    """
    session = _lock_session(session)
    if session.state not in OPEN_TO_EDIT:
        raise WrongStateError(session.state)
    if "starts_at" in changes:
        changes["starts_at"] = _truncate_to_milliseconds(changes["starts_at"])
    changed = {name for name, value in changes.items() if getattr(session, name) != value}
    if not changed:
        return session
    if changed & PLAN and session.state != State.UPCOMING:
        raise WrongStateError(session.state)
    is_covered = "cover_id" in changed
    changed.discard("cover_id")
    for name in changed:
        setattr(session, name, changes[name])
    _check_fields(session, changed, now)
    if is_covered:
        _cover(session, changes["cover_id"])
    was_hidden = session.hidden_at is not None
    reasons = _reasons_for_review(session, now) if is_covered or changed & set(WORDING) else []
    if reasons:
        session.hidden_at, session.review = session.hidden_at or now, Review.IN_REVIEW
        if not was_hidden:
            covers.detach_cover(session)
    _save(session, now, *changed, "cover", "worded_at", "hidden_at", "review")
    moves = not was_hidden and ("starts_at" in changed or bool(reasons and session.state in SCHEDULED))
    _announce_change(session, was_hidden=was_hidden, moves=moves)
    if reasons:
        _send_session_held(session, reasons)
    return session


def _cover(session: LiveSession, medium_id: int | None) -> None:
    new = covers.claim_picture(session.host_id, medium_id) if medium_id is not None else None
    covers.remove(session)
    if new is not None:
        covers.set_cover(session, new)


@transaction.atomic
def renew_cover(*, session: LiveSession, now: datetime) -> None:
    """Show the cover's edited description and focus. Links in a description hold nothing."""
    session = _lock_session(session)
    before, was_hidden = session.cover, session.hidden_at is not None
    covers.refresh_facts(session)
    if session.cover == before:
        return
    is_reworded = before is not None and _cover_description(session.cover) != _cover_description(before)
    reasons = _hold_reasons(session, now) if is_reworded and not was_hidden else []
    is_held = bool(reasons) and not review.only_links(reasons)
    if is_reworded:
        session.worded_at = now
    if is_held:
        session.hidden_at, session.review = now, Review.IN_REVIEW
        covers.detach_cover(session)
    _save(session, now, "cover", "worded_at", "hidden_at", "review")
    _announce_change(session, was_hidden=was_hidden, moves=is_held and session.state in SCHEDULED)
    if is_held:
        _send_session_held(session, reasons)


@transaction.atomic
def refresh_cover(*, session: LiveSession) -> None:
    """Copy the cover's present facts. Nobody is told."""
    session = _lock_session(session)
    covers.refresh_facts(session)
    LiveSession.objects.filter(pk=session.pk).update(cover=session.cover)


@transaction.atomic
def rename_cover(*, session: LiveSession) -> None:
    """Give the cover a new address. Its host is hidden, so nobody is told."""
    session = _lock_session(session)
    covers.detach_cover(session)
    session.save(update_fields=["cover"])


@transaction.atomic
def uncover(*, session: LiveSession, medium_id: int, now: datetime) -> bool:
    """Remove this cover, if it is shown."""
    session = _lock_session(session)
    if session.cover_id != medium_id:
        return False
    covers.remove(session)
    _save(session, now, "cover")
    _announce_change(session, was_hidden=session.hidden_at is not None, moves=False)
    return True


# --- Transitions -----------------------------------------------------------------------------------------
@transaction.atomic
def start(*, session: LiveSession, now: datetime, by_itself: bool = False) -> LiveSession:
    """Go live, `by_itself` only if automatic and due. Raises RejectedError."""
    session = _lock_session(session)
    _require_state(session, State.UPCOMING)
    if session.review == Review.REJECTED:
        raise RejectedError(session.state)
    if by_itself and not (session.automatic and session.starts_at <= now and session.hidden_at is None):
        raise WrongStateError(session.state)
    session.started_at = _truncate_to_milliseconds(now)
    session = _transition(session, State.LIVE, now, "started_at")
    if session.hidden_at is None:
        _remind(session)
    return session


@transaction.atomic
def end(*, session: LiveSession, now: datetime, keeps_short: bool = True) -> LiveSession:
    """Make a replay, hidden if shorter than `SHORT` unless `keeps_short`."""
    session = _lock_session(session)
    _require_state(session, State.LIVE)
    assert session.started_at is not None  # noqa: S101 (a constraint of the table)
    session.ended_at = max(_truncate_to_milliseconds(now), session.started_at)
    is_short = session.ended_at - session.started_at < SHORT
    session.position = fetch(NEXT_ID)[0][0]
    session = _transition(session, State.REPLAY, now, "ended_at", "position")
    _plan_next(session, now)
    if is_short and not keeps_short and (session.hidden_at is None or session.review):
        _hide(session, "", now)  # also during a review: a moderator's decision does not show it again
    if session.hidden_at is None:
        create_delivery(session=session)
    return session


@transaction.atomic
def cancel(*, session: LiveSession, now: datetime) -> LiveSession:
    """Cancel an upcoming session, for good."""
    session = _lock_session(session)
    _require_state(session, State.UPCOMING)
    covers.remove(session)
    session = _transition(session, State.CANCELLED, now, "cover")
    session.reminders.all().delete()
    return session


@transaction.atomic
def mark_missed(*, session: LiveSession, now: datetime) -> LiveSession:
    """Make an upcoming session missed after settings.LIVE_GRACE, unless it was postponed."""
    session = _lock_session(session)
    _require_state(session, State.UPCOMING)
    if session.starts_at + settings.LIVE_GRACE > now:
        raise WrongStateError(session.state)
    session = _transition(session, State.MISSED, now)
    session.reminders.all().delete()
    _plan_next(session, now)
    return session


def force_end(*, session: LiveSession, now: datetime) -> bool:
    """End or cancel a session, for an admin."""
    for verb in (end, cancel):
        try:
            verb(session=session, now=now)
        except WrongStateError:
            continue
        return True
    return False


# --- Visibility ------------------------------------------------------------------------------------------
@transaction.atomic
def hide(*, session: LiveSession, now: datetime) -> bool:
    """Hide a session from others, whatever moderators decided."""
    session = _lock_session(session)
    if session.hidden_at is not None and not session.review:
        return False
    _hide(session, "", now)
    return True


@transaction.atomic
def show_again(*, session: LiveSession, now: datetime) -> bool:
    """Show a hidden session."""
    session = _lock_session(session)
    return session.hidden_at is not None and _show(session, now)


def _hide(session: LiveSession, review: str, now: datetime) -> None:
    was_hidden = session.hidden_at is not None
    session.hidden_at, session.review = session.hidden_at or now, review
    if not was_hidden:
        covers.detach_cover(session)
    _save(session, now, "hidden_at", "review", "cover")
    moves = not was_hidden and session.state in SCHEDULED
    _announce_change(session, was_hidden=was_hidden, moves=moves)


def _show(session: LiveSession, now: datetime) -> bool:
    session.hidden_at, session.review = None, ""
    _save(session, now, "hidden_at", "review")
    _announce_change(session, was_hidden=True, moves=session.state in SCHEDULED)
    if session.state == State.LIVE:
        _remind(session)
    if session.state == State.REPLAY:
        create_delivery(session=session)  # windows may have dropped it
    return True


def _remind(session: LiveSession) -> None:
    if fetch(REMINDERS_DUE, {"session": session.pk}):
        reminders.send.delay_on_commit(session.pk)


# --- Decisions of moderators -----------------------------------------------------------------------------
@transaction.atomic
def hide_for_review(*, session: LiveSession, now: datetime) -> bool:
    """Hide a session until a moderator approves."""
    session = _lock_session(session)
    if session.hidden_at is not None:
        return False
    _hide(session, Review.IN_REVIEW, now)
    return True


@transaction.atomic
def approve(*, session: LiveSession, now: datetime) -> bool:
    """Show what moderation held or rejected, not what host or admin hid. True if it did."""
    session = _lock_session(session)
    return bool(session.review) and _show(session, now)


@transaction.atomic
def reject(*, session: LiveSession, now: datetime) -> bool:
    """Hide a session for its content, and tell its host."""
    session = _lock_session(session)
    if session.review == Review.REJECTED or (session.hidden_at is not None and not session.review):
        return False
    _hide(session, Review.REJECTED, now)
    return True


def locked(session_id: int) -> LiveSession | None:
    """The session, locked until the transaction ends."""
    session = LiveSession.objects.filter(pk=session_id).first()
    return _lock_session(session) if session else None


def _reasons_for_review(session: LiveSession, now: datetime) -> list[str]:
    """Why moderators must see a session with new words. Raises ValidationError for refused links."""
    session.worded_at = now
    if session.hidden_at is not None and not session.review:
        return []  # hidden by host or admin: moderators need not look at it
    reasons = _hold_reasons(session, now) or (["resubmitted"] if session.review == Review.REJECTED else [])
    if session.hidden_at is None and review.only_links(reasons):
        raise ValidationError({"url": _("New accounts can't add links to what others already see.")})
    return reasons


def _hold_reasons(session: LiveSession, now: datetime) -> list[str]:
    others = LiveSession.objects.filter(host=session.host, pk__gt=ids.compose(now - timedelta(hours=1), 0))
    is_new = session._state.adding
    if not is_new:
        others = others.exclude(pk=session.pk)
    earlier = [EarlierText(other.created_at, _moderated_text(other)) for other in others.order_by("-pk")[:EARLIER]]
    return review.hold_reasons(Submission(session.host, _moderated_text(session), is_new, earlier))


def _moderated_text(session: LiveSession) -> str:
    parts = (session.title, session.url, session.cover_url, _cover_description(session.cover))
    return "\n".join(part for part in parts if part)


def _cover_description(cover: dict[str, Any] | None) -> str:
    return str(cover.get("description", "")) if cover else ""


def _send_session_held(session: LiveSession, reasons: list[str]) -> None:
    session_held.send(
        sender=LiveSession, session_id=session.pk, author=session.host, text=_moderated_text(session), reasons=reasons
    )


# --- Reminders -------------------------------------------------------------------------------------------
# Waits for a start in progress, and a start for it: every user with a row is notified.
REMIND = """
    WITH upcoming AS (SELECT id FROM live_livesession WHERE id = %(session)s AND state = 'upcoming' FOR SHARE),
    new AS (
        INSERT INTO live_reminder (session_id, user_id) SELECT id, %(user)s FROM upcoming
        ON CONFLICT DO NOTHING RETURNING 1)
    SELECT EXISTS (SELECT FROM new) FROM upcoming
"""
# A statement of its own, so that it sees every reminder that did not wait for the start.
REMINDERS_DUE = """
    UPDATE live_livesession SET reminders_due = true
    WHERE id = %(session)s AND EXISTS (SELECT FROM live_reminder WHERE session_id = %(session)s) RETURNING id
"""
FORGET_REMINDER = "DELETE FROM live_reminder WHERE session_id = %(session)s AND user_id = %(user)s RETURNING 1"


@transaction.atomic
def remind(*, user: User, session: LiveSession) -> bool:
    """Remind `user` when an upcoming session starts."""
    rows = fetch(REMIND, {"session": session.pk, "user": user.pk})
    if not rows:
        session.refresh_from_db(fields=["state"])
        raise WrongStateError(session.state)
    return bool(rows[0][0])


def forget_reminder(*, user: User, session: LiveSession) -> bool:
    """Remove a reminder."""
    return bool(fetch(FORGET_REMINDER, {"session": session.pk, "user": user.pk}))


# --- Parts that the verbs share --------------------------------------------------------------------------
def _lock_host(host_id: int, *, is_new: bool = False) -> None:
    if is_new:
        Host.objects.bulk_create([Host(user_id=host_id)], ignore_conflicts=True)
    Host.objects.select_for_update(no_key=True).values_list("pk").filter(pk=host_id).first()


def _lock_session(session: LiveSession) -> LiveSession:
    host_id = session.host_id or LiveSession.objects.values_list("host", flat=True).get(pk=session.pk)
    _lock_host(host_id)
    return LiveSession.objects.select_related("host").get(pk=session.pk)


def _require_state(session: LiveSession, state: State) -> None:
    if session.state != state:
        raise WrongStateError(session.state)


def _transition(session: LiveSession, state: State, now: datetime, *fields: str) -> LiveSession:
    session.state = state
    _save(session, now, "state", *fields)
    hidden = session.hidden_at is not None
    _announce_change(session, was_hidden=hidden, moves=not hidden)
    return session


def _save(session: LiveSession, now: datetime, *fields: str) -> None:
    session.version += 1
    session.modified_at = now
    session.save(update_fields=["version", "modified_at", *fields])


def _announce_change(session: LiveSession, *, was_hidden: bool, moves: bool) -> None:
    """Announce a changed session after the commit. `moves`: the lineup has changed, so it is written again."""
    if moves:
        fetch(RESCHEDULE, {"host": session.host_id})
        lineup.apply.delay_on_commit(session.host_id)
    transaction.on_commit(partial(events.announce, events.SessionChanged(session.pk, was_hidden)))


def _plan_next(session: LiveSession, now: datetime) -> None:
    if session.repeat_minutes is None or session.review:  # not approved: does not repeat
        return
    period = timedelta(minutes=session.repeat_minutes)
    periods = max(0, (now - session.starts_at) // period) + 1
    following = LiveSession(
        host=session.host,
        title=session.title,
        url=session.url,
        cover_url=session.cover_url,
        starts_at=session.starts_at + periods * period,
        automatic=session.automatic,
        minutes=session.minutes,
        repeat_minutes=session.repeat_minutes,
        modified_at=now,
        worded_at=now,
    )
    following.save(force_insert=True)
    _announce_change(following, was_hidden=False, moves=True)


def _truncate_to_milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _check_fields(session: LiveSession, changed: set[str], now: datetime) -> None:
    """Check the changed fields only: others may have become wrong with time. Raises ValidationError."""
    errors: dict[str, str] = {}
    if "title" in changed and is_blank(session.title):
        errors["title"] = _("Enter a title.")
    for name in ("url", "cover_url"):
        if name in changed and (address := getattr(session, name)) and not is_link(address):
            errors[name] = _("Enter a web address that starts with https://, without spaces.")
    if "starts_at" in changed and not now - LATE <= session.starts_at <= now + AHEAD:
        errors["starts_at"] = _("Choose a time within the next year.")
    if "minutes" in changed and not 1 <= session.minutes <= LONGEST_MINUTES:
        errors["minutes"] = _("Choose from 1 minute to 24 hours.")
    if errors:
        raise ValidationError(errors)
    session.clean_fields(exclude=[field.name for field in LiveSession._meta.fields if field.name not in changed])
