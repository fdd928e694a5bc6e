import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from live.models import LiveSession
from relations.models import Block, Follow, Mute
from storage.events import Listener, Position, SessionChanged
from stream.news import news_for
from tests.support.factories import UserFactory
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

RELATIONS = ("follower", "stranger", "muting", "blocking", "blocked", "host")


@pytest.fixture
def people() -> dict[str, User]:
    """A host, and somebody in every relation to them."""
    people: dict[str, User] = {name: UserFactory(username=name) for name in RELATIONS}
    host = people["host"]
    for name in ("follower", "muting", "blocking", "blocked"):
        Follow.objects.create(follower=people[name], followee=host)
    Mute.objects.create(muter=people["muting"], muted=host)
    Block.objects.create(blocker=people["blocking"], blocked=host)
    Block.objects.create(blocker=host, blocked=people["blocked"])
    return people


def session(host: User, **fields: Any) -> LiveSession:
    made = LiveSession.objects.create(
        host=host, title="a session", starts_at=timezone.now() + timedelta(hours=1), **fields
    )
    made.refresh_from_db()
    return made


def told(people: dict[str, User], watched: int, *events: SessionChanged) -> dict[str, list[tuple[str, int]]]:
    """What each hears on some page and on the session's page."""
    names = {user.pk: name for name, user in people.items()}
    listeners = [Listener(user.pk) for user in people.values()]
    listeners += [Listener(user.pk, session=watched) for user in people.values()]
    heard: dict[str, list[tuple[str, int]]] = {}
    entries = [(Position(1, number), event) for number, event in enumerate(events)]
    for listener, _, data in news_for(listeners, entries):
        assert listener is not None
        assert data.startswith(b"event: live\n")
        news = json.loads(data.decode().partition("data: ")[2])
        assert news.keys() == {"id", "state", "version"}
        where = f"{names[listener.reader]} there" if listener.session else names[listener.reader]
        heard.setdefault(where, []).append((news["state"], news["version"]))
    return heard


def test_followers_hear_everywhere_and_everybody_else_on_its_page(people: dict[str, User]) -> None:
    shown = session(people["host"])
    news = [("upcoming", 1)]
    everywhere = ["follower", "host", "follower there", "host there"]
    assert told(people, shown.pk, SessionChanged(shown.pk)) == dict.fromkeys(
        [*everywhere, "stranger there", "muting there"], news
    )
    assert told(people, 1, SessionChanged(shown.pk)) == dict.fromkeys(everywhere, news)
    LiveSession.objects.update(state="live", started_at=timezone.now(), version=2)
    assert told(people, 1, SessionChanged(shown.pk), SessionChanged(shown.pk))["follower"] == [("live", 2)] * 2


def test_readers_who_saw_it_hear_that_it_is_gone_and_none_of_what_is_hidden(people: dict[str, User]) -> None:
    hidden = session(people["host"], hidden_at=timezone.now())
    heard = told(people, hidden.pk, SessionChanged(hidden.pk))
    assert heard.pop("host") == heard.pop("host there") == [("upcoming", 1)]
    gone = [("gone", 1)]
    assert heard == {"follower": gone, "follower there": gone, "stranger there": gone, "muting there": gone}
    assert told(people, hidden.pk, SessionChanged(hidden.pk, was_hidden=True)).keys() == {"host", "host there"}
    User.objects.filter(username="host").update(is_active=False)
    assert told(people, hidden.pk, SessionChanged(hidden.pk)).keys() == {"host", "host there"}


def test_one_query_whatever_the_number_of_sessions_and_listeners(people: dict[str, User]) -> None:
    made = [session(people["host"]) for _ in range(5)]
    with statements() as queries:
        told(people, made[0].pk, *(SessionChanged(one.pk) for one in made))
    assert len(queries) == 1
