"""A real streaming replica: paused, frozen, killed, or another server's."""

import math
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
from django.conf import settings as real_settings
from django.db import OperationalError, connections, transaction
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.actions import issue_token
from accounts.models import User
from discover.interests import interests_of
from items import actions as items
from items.models import Item, Visibility
from operation.doctor import postgresql
from operation.doctor.findings import OK, WARNING
from operation.gauges import set_user_gauges
from relations import actions as relations
from relations.suggestions import suggestions
from runtime import metrics
from runtime.embedded import wait_for
from storage import replica
from storage.connections import fetch
from storage.ids import MAX_ID
from storage.postgresql.base import Connection, breaker_of
from tests.support.api import API
from tests.support.factories import UserFactory
from tests.support.replica import Replica, flushed, in_use, sockets_of_primary
from tests.support.servers import frozen_postgres

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", "replica"]),
]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[Replica]:
    server = Replica(tmp_path_factory.mktemp("replica"))
    server.start()
    assert wait_for(server.answers, 240), server.last_words()
    with in_use(str(server.home.sockets)):
        yield server
    server.stop()


@pytest.fixture
def server(running: Replica, transactional_db: None, settings: Any) -> Iterator[Replica]:
    """A replica that has caught up, with enough time for a busy machine."""
    settings.RATE_SCALE = 1e6
    settings.REPLICA_TIMEOUT_SECONDS, settings.REPLICA_LAG_SECONDS, settings.REPLICA_PIN_SECONDS = 60, 3600, 3700
    fetch(replica.NOTE, [0])
    after_a_while()
    running.catch_up()
    yield running
    breaker_of(replica.REPLICA).reset()
    connections[replica.REPLICA].close()


def after_a_while() -> None:
    fetch("UPDATE feedsite_written SET written_at = written_at - interval '2 hours' RETURNING 1")


def client_of(user: User | None) -> APIClient:
    client = APIClient()
    if user:
        client.credentials(HTTP_AUTHORIZATION=f"Token {issue_token(user=user)}")
    return client


def publish(text: str, sender: User | None = None, **fields: Any) -> Item:
    return items.publish(sender=sender or UserFactory.create(), content={"text": text}, **fields)


def found(client: Client, query: str, **parameters: Any) -> list[int]:
    """Only the first page also searches people."""
    response = client.get(f"{API}/search", {"q": query, "last_id": MAX_ID} | parameters)
    assert response.status_code == 200
    return [int(item["id"]) for item in response.json()["items"]]


def outcomes() -> Counter[str]:
    return Counter(
        {
            labels["outcome"]: int(value)
            for name, labels, value in metrics.samples()
            if name == "feedsite_replica_reads_total"
        }
    )


class Outcomes:
    """Outcomes of reads that may lag."""

    def __enter__(self) -> "Outcomes":
        self.before = outcomes()
        return self

    def __exit__(self, *error: object) -> None:
        self.counted = outcomes() - self.before


def serves(reader: User | None = None) -> bool:
    return replica.read_from_replica(
        reader and reader.pk, lambda on: bool(fetch("SELECT pg_is_in_recovery()", on=on)[0][0])
    )


# --- Reads that go there ---------------------------------------------------------------------------------
READS: dict[str, Callable[[User], object]] = {
    "search": lambda reader: client_of(None).get(f"{API}/search", {"q": "words", "last_id": MAX_ID}),
    "people": lambda reader: client_of(None).get("/search", {"q": "ann", "show": "people"}),
    "recall": lambda reader: client_of(reader).post(f"{API}/discover/feed", {"action": "refresh", "limit": 5}),
    "interests": lambda reader: interests_of(reader, now=timezone.now()),
    "suggestions": suggestions,
    "census": lambda reader: set_user_gauges(),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", READS)
def test_what_may_lag_is_read_there(name: str, server: Replica, ann: User) -> None:
    publish("words #tag")
    server.catch_up()
    on_replica: list[str] = []

    def noting(execute: Any) -> Any:
        def note(cursor: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(cursor.connection, Connection) and "pg_" not in str(query):
                on_replica.append(str(query))
            return execute(cursor, query, *args, **kwargs)

        return note

    with ExitStack() as stack:
        for cursors in (psycopg.Cursor, psycopg.ServerCursor):
            stack.enter_context(patch.object(cursors, "execute", noting(cursors.execute)))
        all_of = stack.enter_context(Outcomes())
        READS[name](ann)
    assert all_of.counted == {"replica": 1}
    assert any("FROM" in query for query in on_replica)


def test_it_cannot_be_written_to(server: Replica) -> None:
    with pytest.raises(OperationalError), connections["replica"].cursor() as cursor:
        cursor.execute("DELETE FROM accounts_user")


def test_rows_that_came_from_it_are_saved_on_the_primary(server: Replica, ann: User) -> None:
    server.catch_up()
    row = User.objects.using("replica").get(pk=ann.pk)
    row.display_name = "Ann"
    row.save(update_fields=["display_name"])
    ann.refresh_from_db()
    assert ann.display_name == "Ann"


# --- Own writes ------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_writers_find_it_on_every_device_and_others_may_wait(server: Replica, ann: User) -> None:
    phone, laptop, bob = client_of(ann), Client(), client_of(UserFactory.create())
    laptop.force_login(ann)
    old = publish("words").pk
    server.catch_up()
    with server.paused():
        assert found(bob, "words") == [old]
        response = phone.post(f"{API}/items", {"content": {"text": "new words"}})
        new = int(response.json()["id"])
        with Outcomes() as own:
            assert found(phone, "words") == [new, old]
            assert found(laptop, "words") == [new, old]
        assert own.counted == {"own": 2}
        with Outcomes() as of_others:
            assert found(bob, "words") == found(client_of(None), "words") == [old], "who only reads may wait"
        assert of_others.counted == {"replica": 2}
        laptop.post(f"/items/{new}/edit", {"text": "other words"})
        assert found(phone, "other") == [new]
    server.catch_up()
    with Outcomes() as again:
        assert found(phone, "words") == [new, old]
        after_a_while()
        assert found(phone, "words") == [new, old]
    assert again.counted == {"own": 1, "replica": 1}


def test_writers_are_kept_from_it_for_longer_than_it_may_lag() -> None:
    # The lag is measured once a second.
    assert real_settings.REPLICA_PIN_SECONDS > real_settings.REPLICA_LAG_SECONDS + 1


def test_what_was_written_before_the_notes_were_lost_is_found(server: Replica, ann: User) -> None:
    """Only the table's emptiness shows a crash."""
    api = client_of(ann)
    with server.paused():
        new = int(api.post(f"{API}/items", {"content": {"text": "words"}}).json()["id"])
        fetch("DELETE FROM feedsite_written RETURNING 1")
        assert found(api, "words") == [new]
        assert found(api, "words") == [new], "and what is noted since does not hide it"
    server.catch_up()
    after_a_while()
    assert serves(ann)


# --- Deletions -------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_deleted_rows_are_gone_at_once(server: Replica, ann: User) -> None:
    reader, bob = UserFactory.create(username="reader"), UserFactory.create(username="bobby")
    gone = [publish("words #tag", UserFactory.create()) for _ in range(5)]
    kept = [publish("words #tag", UserFactory.create()).pk for _ in range(2)]
    gone.append(publish("words #tag", bob))
    anonymous, api = client_of(None), client_of(reader)
    server.catch_up()
    with server.paused():
        items.delete(item=gone[0])
        items.reject(item=gone[1])
        items.hold(item=gone[2], reasons=["links"])
        items.change_visibility(item=gone[3], visibility=Visibility.SELF)
        User.objects.filter(pk=gone[4].sender_id).update(is_active=False)
        relations.block(blocker=bob, blocked=reader)
        with Outcomes() as all_of:
            # No reader looks for an issued page.
            answer = api.post(f"{API}/discover/feed", {"action": "refresh", "limit": 10}).json()
            assert found(api, "words", limit=1) == kept[:0:-1], "the page is filled"
            assert found(api, "words", limit=1, last_id=kept[1]) == kept[:1]
            assert api.get(f"{API}/search", {"q": "words", "limit": 2}).json()["has_more"] is False
            assert api.get(f"{API}/search", {"q": "bobby"}).json()["users"] == []
            assert not {bob, gone[4].sender} & set(suggestions(reader))
        assert {int(item["id"]) for item in answer["data"]["items"]} == set(kept)
        assert [int(item["id"]) for item in api.get(f"{API}/tags/tag/items").json()["items"]] == kept[::-1]
        assert gone[5].pk in found(anonymous, "words"), "whom nobody blocks"
    assert all_of.counted.keys() == {"replica"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_walk_is_exact_wherever_its_pages_come_from(seed: int, server: Replica, ann: User) -> None:
    """The reader posts and posts disappear, while the replica stops and continues."""
    chance, api = random.Random(seed), client_of(ann)  # noqa: S311 (no secret)
    posts = {item.pk: item for item in [publish("words") for _ in range(28)]}
    visible = sorted(posts, reverse=True)
    server.catch_up()
    last_id, has_more, walked = visible[0] + 1, True, 0
    with Outcomes() as all_of:
        while has_more:
            chance.choice([server.pause, server.resume, lambda: None])()
            coming = [pk for pk in visible if pk < last_id][:5]
            for pk in chance.sample(coming, min(2, len(coming))):
                items.delete(item=posts[pk])
                visible.remove(pk)
            if chance.random() < 0.3:
                new = int(api.post(f"{API}/items", {"content": {"text": "words"}}).json()["id"])
                assert found(api, "words", limit=1) == [new]
            reader = chance.choice([api, client_of(None)])
            page = reader.get(f"{API}/search", {"q": "words", "limit": 4, "last_id": last_id}).json()
            below = [pk for pk in visible if pk < last_id]
            assert [int(item["id"]) for item in page["items"]] == below[:4]
            assert page["has_more"] == (len(below) > 4)
            last_id, has_more, walked = int(page["last_id"] or 0), page["has_more"], walked + 1
    server.resume()
    assert walked > 2
    assert all_of.counted["replica"]


# --- When it does not do ---------------------------------------------------------------------------------
@pytest.mark.long
def test_too_far_behind(server: Replica, settings: Any) -> None:
    anonymous = client_of(None)
    settings.REPLICA_LAG_SECONDS = 0
    # Other tests write too, so it rarely has everything.
    assert wait_for(serves, 60), "nothing was written: it is not behind, however long ago that was"
    with server.paused():
        new = publish("words").pk
        flushed()
        assert wait_for(lambda: not serves(), 60), "each process measures it once a second"
        with Outcomes() as all_of:
            assert found(anonymous, "words") == [new]
        assert all_of.counted == {"behind": 1}
        settings.REPLICA_LAG_SECONDS = 3600
        assert found(anonymous, "words") == []


@pytest.mark.long
def test_frozen_and_killed(server: Replica, settings: Any, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    publish("words")
    anonymous = client_of(None)
    server.catch_up()
    assert found(anonymous, "words"), "there is a connection"
    settings.REPLICA_TIMEOUT_SECONDS = 0.2
    monkeypatch.setattr("web.health.DEADLINE_SECONDS", 60)  # of the healthy servers on a busy machine
    with frozen_postgres(server), Outcomes() as while_frozen:
        pages = [found(anonymous, "words") for _ in range(20)]
        assert all(len(page) == 1 for page in pages)
        assert client.get("/readyz").status_code == 200
        assert found_state("replica") == WARNING
    assert while_frozen.counted == {"failed": 1, "away": 19}, "one of them waits"
    settings.REPLICA_TIMEOUT_SECONDS = 60
    breaker_of(replica.REPLICA).reset()  # skips the ten seconds' wait
    assert wait_for(serves, 60)
    server.kill()
    with Outcomes() as while_dead:
        assert len(found(anonymous, "words")) == 1
        assert len(found(anonymous, "words")) == 1
    assert while_dead.counted == {"failed": 1, "away": 1}
    replica.observe()
    assert metrics.replica_up.labels("replica")._value.get() == 0
    server.start()
    assert wait_for(server.answers, 60)
    breaker_of(replica.REPLICA).reset()
    assert wait_for(serves, 60)
    replica.observe()
    assert metrics.replica_up.labels("replica")._value.get() == 1


@pytest.mark.slow
def test_a_read_that_its_replay_cancels_runs_on_the_primary(server: Replica) -> None:
    server.run_sql("ALTER SYSTEM SET max_standby_streaming_delay = '10ms'")
    server.run_sql("SELECT pg_reload_conf()")
    reads = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep')"

    def lock() -> None:
        assert wait_for(lambda: server.run_sql(reads), 60)
        with transaction.atomic(), connections["default"].cursor() as cursor:
            cursor.execute("LOCK TABLE accounts_user")
        connections.close_all()

    def read(on: str) -> bool:
        query = "SELECT pg_is_in_recovery(), pg_sleep(%s) FROM (SELECT count(*) FROM accounts_user) counted"
        return bool(fetch(query, [60 if on == "replica" else 0], on=on)[0][0])

    thread = threading.Thread(target=lock)
    thread.start()
    try:
        with Outcomes() as all_of:
            assert not replica.read_from_replica(None, read)
        assert all_of.counted == {"failed": 1}
        assert serves(), "nobody else is kept away"
    finally:
        thread.join()
        server.run_sql("ALTER SYSTEM RESET max_standby_streaming_delay")
        server.run_sql("SELECT pg_reload_conf()")


@pytest.mark.slow
def test_servers_that_are_no_replica_are_not_read(server: Replica) -> None:
    wrapper = connections[replica.REPLICA]
    wrapper.close()
    before = outcomes()["foreign"]
    with patch.dict(wrapper.settings_dict, HOST=sockets_of_primary()):
        assert found_state("replica") == WARNING
        assert wait_for(lambda: not serves() and outcomes()["foreign"] > before, 60)
        wrapper.close()


# --- Looking after it ------------------------------------------------------------------------------------
def found_state(name: str) -> str:
    return next(finding.state for finding in postgresql.replicas() if finding.name == name)


@pytest.mark.slow
def test_what_doctor_says(server: Replica, settings: Any) -> None:
    assert {finding.state for finding in postgresql.replicas()} == {OK}
    with server.paused():
        publish("words")
        flushed()
        settings.REPLICA_LAG_SECONDS = 0
        assert found_state("replica lag") == WARNING


def test_the_lag_of_a_replica_that_replayed_nothing_is_unknown(server: Replica) -> None:
    """`pg_last_xact_replay_timestamp` is NULL until the first replayed commit."""
    ((system,),) = fetch("SELECT system_identifier FROM pg_control_system()")
    assert replica.compare_with_primary(system, "0/1", None) == (True, math.inf)
    assert replica.ReplicaCondition(True, True, math.inf).reason_unusable == replica.BEHIND


def test_a_replica_of_another_primary_or_of_one_that_was_replaced(server: Replica) -> None:
    ((system,),) = fetch("SELECT system_identifier FROM pg_control_system()")
    assert replica.compare_with_primary(system + 1, "0/1", timezone.now())[0] is False
    assert replica.compare_with_primary(system, "FFFFFFFF/0", timezone.now()) == (False, 0), (
        "it has what this primary lacks"
    )
    assert replica.ReplicaCondition(True, False, 0).reason_unusable == replica.FOREIGN
