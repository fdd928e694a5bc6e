# ruff: noqa: RUF001 - Chinese titles have Chinese punctuation
"""Live sessions of the demo. A show repeats (`repeat_minutes`), so a demo stays lively."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from accounts.models import User
from community.demo_pictures import PictureFile, log_failures, upload_picture
from live.covers import set_cover
from live.models import Host, LiveSession, Reminder, State
from relations.models import Follow
from storage import ids

MINUTE = timedelta(minutes=1)
PAST = 3
"""Replays that every show begins with."""
PLANNED = timedelta(days=1)
"""How long before its start a session was created."""
WAITING = "mira"
"""A demo reader with a reminder for the next session."""


class Show(NamedTuple):
    """A show: every `period` minutes for `length` minutes, last `ago` minutes ago."""

    host: str
    title: str
    period: int
    length: int
    ago: int
    cover: str = ""
    """A file of `demo_pictures`, for the session that is on or next."""


SHOWS = (
    Show("harbor-news", "Live from the fish market", 120, 40, 10, "ferry"),
    Show("weather-desk", "Out of the window: the weather until tonight", 60, 12, 52),
    Show("tomas", "Fixing a flat without swearing", 240, 40, 230, "coast"),
    Show("lin-wei", "一起读一首短诗", 180, 35, 20, "hills"),
    Show("zhou-mo", "周末厨房：葱油面", 300, 45, 255),
    Show("tang-li", "画一座小城", 360, 60, 45),
    Show("he-chuan", "晚上看星星", 720, 90, 300),
    Show("", "Questions about bread, answered", 180, 60, 4, "bread"),
    Show("", "Sketching the old bridge", 240, 45, 215, "bridge-dawn"),
    Show("", "Mending together, quietly", 150, 70, 95),
    Show("", "A walk along the harbour wall", 480, 40, 130),
)


def write_sessions(follows: Sequence[Follow], *, now: datetime, has_pictures: bool = False) -> None:
    """Write all sessions."""
    now = now.astimezone(UTC).replace(microsecond=now.microsecond // 1000 * 1000)
    people = {user.username: user for user in User.objects.active()}
    fans = Counter(follow.followee_id for follow in follows)
    named = {show.host for show in SHOWS}
    ranked = sorted(people.values(), key=lambda user: (-fans[user.pk], user.pk))
    others = (user for user in ranked if user.username not in named and not user.is_staff)
    sessions: list[LiveSession] = []
    covers: list[tuple[LiveSession, str]] = []
    for show in SHOWS:
        host = people.get(show.host) if show.host else next(others, None)
        if host is not None:
            sessions += _series(show, host, now)
            if show.cover and has_pictures:
                covers.append((sessions[-1], show.cover))
    for place, session in enumerate(sessions):  # so that ids of one millisecond differ
        session.pk = ids.compose(min(now, session.starts_at - PLANNED), place)
        if session.ended_at:
            session.position = ids.compose(session.ended_at, place)
    with log_failures():
        for session, name in covers:
            set_cover(session, upload_picture(session.host_id, PictureFile(name, "")))
    LiveSession.objects.bulk_create(sessions)
    scheduled = Counter(session.host_id for session in sessions if session.state != State.REPLAY)
    pulled = {session.host_id for session in sessions if session.pulled}
    Host.objects.bulk_create(
        Host(user_id=pk, scheduled=scheduled[pk], has_pulled=pk in pulled)
        for pk in sorted({session.host_id for session in sessions})
    )
    upcoming = [session for session in sessions if session.state == State.UPCOMING]
    if upcoming and WAITING in people:
        Reminder.objects.create(session=min(upcoming, key=lambda session: session.starts_at), user=people[WAITING])


def _series(show: Show, host: User, now: datetime) -> list[LiveSession]:
    last, period, length = now - show.ago * MINUTE, show.period * MINUTE, show.length * MINUTE
    is_on = show.ago < show.length
    first = 1 if is_on else 0
    series = [_session(show, host, last - times * period, State.REPLAY) for times in range(first, first + PAST)]
    for session in series:
        session.started_at, session.ended_at = session.starts_at, session.starts_at + length
        session.pulled = host.is_big_v
    following = _session(show, host, last if is_on else last + period, State.LIVE if is_on else State.UPCOMING)
    following.repeat_minutes = show.period
    if is_on:
        following.started_at = following.starts_at
    return [*series, following]


def _session(show: Show, host: User, starts_at: datetime, state: State) -> LiveSession:
    return LiveSession(
        host=host,
        title=show.title,
        url=f"https://live.example/{host.username}",
        state=state,
        starts_at=starts_at,
        automatic=True,
        minutes=show.length,
        modified_at=starts_at,
    )
