"""Hidden and muted sessions must not make a page expensive."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from accounts.levels.actions import lower_levels
from accounts.models import User
from live import feed, pull, replays, walk
from live.feed import live_page
from live.models import Host, LiveSession, State
from live.walk import LivePage
from relations import actions as relations
from storage import connections
from tests.support.sessions import seen, session
from tests.support.workers import Workers

pytestmark = pytest.mark.django_db(transaction=True)

HIDDEN = 2_000
ROWS = 1_200
"""Most rows that one page may read: some rounds over a window."""


@pytest.fixture
def reader(db: None, monkeypatch: pytest.MonkeyPatch) -> User:
    monkeypatch.setattr(settings, "LIVE_REPLAYS_CAP", 50)
    return seen()


@pytest.fixture
def hosts(reader: User) -> list[User]:
    """The second has older replays."""
    made = [seen() for _ in range(2)]
    for host in made:
        relations.follow(follower=reader, followee=host)
    return made


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows read, one entry a statement."""
    found: list[int] = []
    fetch = connections.fetch

    def explained(query: str, params: Any = (), **options: Any) -> Any:
        if "live_livesession" in query and "UPDATE" not in query:
            ((plan,),) = fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", params)
            plan = json.loads(plan) if isinstance(plan, str) else plan
            found.append(_rows(plan[0]["Plan"]))
        return fetch(query, params, **options)

    for module in (feed, walk, pull):
        monkeypatch.setattr(module, "fetch", explained)
    return found


def _rows(node: dict[str, Any]) -> int:
    """Returned and filtered rows, with child nodes."""
    given = node["Actual Rows"] + node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return int(given * node["Actual Loops"]) + sum(map(_rows, node.get("Plans", ())))


def many(host: User, count: int, state: State, **fields: Any) -> None:
    """Sessions of a host, without the verbs."""
    now = timezone.now()
    top = LiveSession.objects.exclude(position=None).order_by("-position").values_list("position", flat=True).first()
    made = [
        LiveSession(
            host=host,
            title="words",
            state=state,
            starts_at=now + timedelta(hours=1, seconds=number),
            started_at=now if state == State.REPLAY else None,
            ended_at=now if state == State.REPLAY else None,
            position=(top or 2**50) + number + 1 if state == State.REPLAY else None,
            **fields,
        )
        for number in range(count)
    ]
    LiveSession.objects.bulk_create(made)
    Host.objects.update_or_create(
        user=host,
        defaults={
            "scheduled": host.live_sessions.filter(state=State.UPCOMING, hidden_at=None).count(),
            "has_pulled": host.live_sessions.filter(pulled=True).exists(),
        },
    )


def a_site() -> None:
    """Replays of other hosts, and statistics for the planner."""
    for _ in range(20):
        many(seen(), 150, State.REPLAY)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE live_livesession, live_host, accounts_user, relations_follow")


def page(reader: User, before: LivePage | None = None, size: int = 5) -> LivePage:
    at = {"session_id": before.session_id, "last_id": before.last_id} if before else {}
    found = live_page(User.objects.get(pk=reader.pk), page_size=size, now=timezone.now(), **at)  # type: ignore[arg-type]
    found.store()
    return found


def walked(reader: User, most: int = 100) -> list[int]:
    ids: list[int] = []
    found: LivePage | None = None
    for _ in range(most):
        found = page(reader, found)
        ids += [int(item.id) for item in found.items]
        if not found.has_more:
            return ids
    raise AssertionError("the walk has no end")


def hide(host: User, reader: User) -> None:
    LiveSession.objects.filter(host=host, position__gt=2**50).update(hidden_at=timezone.now())


def suspend(host: User, reader: User) -> None:
    User.objects.filter(pk=host.pk).update(is_active=False)


def block(host: User, reader: User) -> None:
    relations.block(blocker=host, blocked=reader)


def mute(host: User, reader: User) -> None:
    relations.mute(muter=reader, muted=host)


WAYS = [
    # The short run tries each way once, and each kind of host with each kind of page.
    pytest.param(
        away,
        pulled,
        window,
        id=f"{'with a window' if window else 'by SQL'}-{'pulled' if pulled else 'pushed'}-{away.__name__}",
        marks=[] if (number + pulled + 2 * window) % 4 == 0 else pytest.mark.long,
    )
    for number, away in enumerate([hide, suspend, block, mute])
    for pulled in (False, True)
    for window in (False, True)
]


@pytest.mark.long
@pytest.mark.parametrize(("away", "pulled", "window"), WAYS)
def test_replays_that_may_not_be_seen_are_not_looked_through(
    reader: User,
    hosts: list[User],
    workers: Workers,
    looked_at: list[int],
    away: Callable[[User, User], None],
    pulled: bool,
    window: bool,
) -> None:
    ids = [session(hosts[1], State.REPLAY).pk for _ in range(3)][::-1]
    many(hosts[0], HIDDEN, State.REPLAY, pulled=pulled)
    if window:
        page(reader)
        workers.work()
    away(hosts[0], reader)
    if not window:
        User.objects.filter(pk=reader.pk).update(last_seen_at=timezone.now() - timedelta(days=60))
        lower_levels()
    a_site()
    del looked_at[:]
    found = page(reader)
    assert [int(item.id) for item in found.items] == ids
    assert sum(looked_at) < ROWS, looked_at


@pytest.mark.long
def test_a_window_is_built_past_any_number_of_replays_that_are_pulled(
    reader: User, hosts: list[User], looked_at: list[int]
) -> None:
    ids = [session(hosts[0], State.REPLAY).position for _ in range(3)][::-1]
    many(hosts[0], HIDDEN, State.REPLAY, pulled=True)
    a_site()
    _, entries, _ = replays.pull_entries(reader.pk, 300)
    assert [entry.item_id for entry in entries] == ids
    assert sum(looked_at) < ROWS


@pytest.mark.long
def test_a_page_past_what_was_frozen_and_vanished_is_short_and_the_walk_exact(
    reader: User, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """30 hosts with 100 planned sessions each. All but the last vanish after the freeze."""
    gone = [seen() for _ in range(30)]
    for host in gone:
        relations.follow(follower=reader, followee=host)
        many(host, 100, State.UPCOMING)
    last = seen()
    relations.follow(follower=reader, followee=last)
    ids = [session(last, State.UPCOMING, minutes=600).pk, session(last, State.REPLAY).pk]
    first = page(reader)
    assert len(first.items) == 5
    User.objects.filter(pk__in=[host.pk for host in gone]).update(is_active=False)
    asked: list[int] = []
    fetch = connections.fetch

    def counted(query: str, params: Any = (), **options: Any) -> Any:
        if query is walk.VERIFY:
            asked.append(params["ids"].count(",") + 1)
        return fetch(query, params, **options)

    monkeypatch.setattr(walk, "fetch", counted)
    pages = [found := first]
    for _ in range(10):
        del asked[:]
        pages.append(found := page(reader, found))
        assert sum(asked) <= walk.BOUND
        if not found.has_more:
            break
    assert [int(item.id) for each in pages[1:] for item in each.items] == ids
    assert [bool(each.items) for each in pages[1:]].count(False) == len(pages) - 2 > 0, "short, and not looked through"
    assert walked(reader) == ids
