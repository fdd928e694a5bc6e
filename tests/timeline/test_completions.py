import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.db import OperationalError, connection
from psycopg import sql

from accounts.levels import actions as levels
from accounts.levels import big_v
from accounts.models import User
from items import actions as items
from items.models import Item
from relations import actions as relations
from storage import keys, window
from storage.connections import fetch
from tests.support.effort import some
from tests.support.timelines import read, seen
from tests.support.workers import Workers
from timeline import backfill, completions, fanout, home, truth
from timeline.check import differences
from timeline.models import Backfill, Delivery
from timeline.oracle import home_ids

pytestmark = pytest.mark.django_db(transaction=True)

Say = Callable[..., Item]


class Steps:
    """Runs a call in another thread. It stops before and after each function that `stops` wraps."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.at: str | None = "begin"
        self.error: BaseException | None = None
        self._goes, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=[call], daemon=True)
        self._thread.start()

    def _run(self, call: Callable[[], Any]) -> None:
        self._goes.acquire()
        try:
            call()
        except BaseException as error:  # noqa: BLE001 (`step` raises it in the test's thread)
            self.error = error
        finally:
            connection.close()
            self.at = None
            self._stopped.release()

    def stop(self, name: str) -> None:
        if threading.current_thread() is self._thread:
            self.at = name
            self._stopped.release()
            self._goes.acquire()

    def step(self) -> None:
        assert self.at is not None
        self._goes.release()
        assert self._stopped.acquire(timeout=30), f"stuck after {self.at}"
        if self.error:
            raise self.error

    def finish(self) -> int:
        """Returns the number of steps."""
        count = 0
        while self.at is not None:
            self.step()
            count += 1
        return count


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> list[Steps]:
    """Steps stop at each query of fan-out and backfill."""
    running: list[Steps] = []

    def stopping(module: Any, name: str) -> None:
        inner = getattr(module, name)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            for steps in running:
                steps.stop(f"before {name}")
            result = inner(*args, **kwargs)
            for steps in running:
                steps.stop(f"after {name}")
            return result

        monkeypatch.setattr(module, name, wrapped)

    for name in ("_claim", "deliver", "pipelined", "_finish"):
        stopping(fanout, name)
    for name in ("pull", "pipelined", "_finish"):
        stopping(backfill, name)
    return running


@contextmanager
def between(act: Callable[[], object]) -> Iterator[None]:
    """Run `act` once, after a page's windows and before PostgreSQL."""
    acts = [act]

    def late(*args: Any, **kwargs: Any) -> Any:
        if acts:
            acts.pop()()
        return truth.verify(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home, "verify", late)
        yield
    assert not acts, "the page did not ask"


@contextmanager
def read_again_after(act: Callable[[], object], complete: Callable[[], object]) -> Iterator[None]:
    """`complete` runs after the page's windows, so they are read again. `act` runs before that, after PostgreSQL's
    answer.
    """
    acts = [act]

    def slow(*args: Any, **kwargs: Any) -> Any:
        if not acts:
            return truth.verify(*args, **kwargs)
        complete()
        found = truth.verify(*args, **kwargs)
        acts.pop()()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home, "verify", slow)
        yield
    assert not acts, "the page did not ask"


def exact_at_every_pair_of_steps(begin: Callable[[], Steps], *readers: User) -> None:
    """Windows are read at one step, PostgreSQL is asked at a later one."""
    count, first = 1, 0
    while first <= count:
        second = first
        while second <= count:
            steps = begin()
            for _ in range(first):
                steps.step()
            reader = readers[second % len(readers)]
            assert read(reader, limit=5) == home_ids(reader.pk)[:5]  # the connection remembers this moment

            def advance(steps: Steps = steps, by: int = second - first) -> None:
                for _ in range(by):
                    steps.step()

            for each in readers:
                if each == reader:
                    with between(advance):
                        page = read(each, limit=5)
                else:
                    page = read(each, limit=5)
                assert page == home_ids(each.pk)[:5], f"windows at step {first}, truth at step {second}, {steps.at}"
            count = second + steps.finish()
            second += 1
        first += 1
    assert count > 3


@pytest.fixture
def star(workers: Workers) -> User:
    user = seen()
    big_v.make_big_v(user=user)
    workers.work()
    return user


@pytest.fixture
def readers(star: User, follow: Any, workers: Workers) -> list[User]:
    """One whose level takes pushes, and one who merges outboxes."""
    found = [seen(), seen(level=2)]
    for user in found:
        follow(user, star)
        follow(user, seen())
        read(user)
    workers.work()
    for user in found:
        read(user)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("is_big_v", some(1, [False, True]))
def test_a_page_at_every_step_of_a_fan_out(
    is_big_v: bool, readers: list[User], star: User, follow: Any, workers: Workers, stops: list[Steps]
) -> None:
    sender = star if is_big_v else seen()
    for user in readers:
        follow(user, sender)
        read(user)
    workers.work()

    def begin() -> Steps:
        stops.clear()
        item = items.publish(sender=User.objects.get(pk=sender.pk), content={"text": "words"})
        workers.queue.clear()
        stops.append(Steps(lambda: fanout.fan_out(item.pk)))
        return stops[0]

    exact_at_every_pair_of_steps(begin, *readers)
    assert not Delivery.objects.exists()
    assert list(differences([user.pk for user in readers])) == []


@pytest.mark.long
def test_a_page_at_every_step_of_a_demotion(
    readers: list[User], star: User, say: Say, workers: Workers, stops: list[Steps]
) -> None:
    def begin() -> Steps:
        stops.clear()
        big_v.make_big_v(user=star)
        workers.work()
        say(star)
        workers.work()
        for user in readers:
            read(user)
        workers.work()
        big_v.demote(user=star)
        workers.queue.clear()
        job = Backfill.objects.get(sender=star, finished_at=None, cancelled_at=None)
        stops.append(Steps(lambda: backfill.run(job.pk)))
        return stops[0]

    exact_at_every_pair_of_steps(begin, *readers)
    assert not User.objects.get(pk=star.pk).is_big_v


def nothing(reader: User, friend: User, star: User) -> None:
    """Every author is followed, none blocked."""


CHANGES: dict[str, tuple[Callable[[User, User, User], object], Callable[[User, User, User], object]]] = {
    "unfollow": (nothing, lambda reader, friend, _: relations.unfollow(follower=reader, followee=friend)),
    "follow": (
        lambda reader, friend, _: relations.unfollow(follower=reader, followee=friend),
        lambda reader, friend, _: relations.follow(follower=reader, followee=friend),
    ),
    "block": (nothing, lambda reader, friend, _: relations.block(blocker=friend, blocked=reader)),
    "unblock": (
        lambda reader, friend, _: relations.block(blocker=friend, blocked=reader),
        lambda reader, friend, _: relations.unblock(blocker=friend, blocked=reader),
    ),
    "follow a big-V": (
        lambda reader, _, star: relations.unfollow(follower=reader, followee=star),
        lambda reader, _, star: relations.follow(follower=reader, followee=star),
    ),
    "unfollow a big-V": (nothing, lambda reader, _, star: relations.unfollow(follower=reader, followee=star)),
    "promotion": (nothing, lambda _, friend, star: big_v.make_big_v(user=friend)),
    "rise": (nothing, lambda reader, *_: levels.touch([reader.pk])),
    "deletion": (
        nothing,
        lambda _, friend, star: [items.delete(item=item) for item in Item.objects.filter(sender=friend)[:3]],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("level", [2, 3])
@pytest.mark.parametrize("change", CHANGES)
def test_a_page_during_which_something_changes(
    change: str, level: int, star: User, follow: Any, say: Say, workers: Workers
) -> None:
    reader, friend = seen(level=level), seen()
    for sender in (star, friend):
        follow(reader, sender)
        for _ in range(4):
            say(sender)
    workers.work()
    prepare, act = CHANGES[change]
    prepare(reader, friend, star)
    for _ in range(2):
        read(reader)
        workers.work()

    def happen() -> None:
        act(reader, friend, star)
        workers.work()
        say(friend)
        say(star)
        workers.work()

    with between(happen):
        assert read(reader, limit=5) == home_ids(reader.pk)[:5]
    assert read(reader, limit=5) == home_ids(reader.pk)[:5]


def test_a_connection_that_ends_takes_what_it_remembers_with_it(
    reader: User, follow: Any, say: Say, workers: Workers
) -> None:
    """The same number may stand for another delivery after a crash or failover."""
    sender = seen()
    follow(reader, sender)
    say(sender)
    for _ in range(2):
        read(reader)
        workers.work()
    read(reader)
    ((before,),) = fetch("SELECT last_value FROM timeline_completions")

    def fail_over() -> None:
        say(sender)
        workers.work()
        fetch("SELECT setval('timeline_completions', %s)", [before])
        connection.close()

    with between(fail_over):
        assert read(reader) == home_ids(reader.pk)


@pytest.mark.sessions
def test_a_page_whose_session_is_ended_shows_an_error_and_the_next_is_whole(
    reader: User, follow: Any, say: Say, workers: Workers
) -> None:
    sender = seen()
    follow(reader, sender)
    for _ in range(2):
        read(reader)
        workers.work()

    def crash() -> None:
        say(sender)
        workers.work()
        process = connection.connection.info.backend_pid
        settings = connection.get_connection_params()
        with connection.Database.connect(**settings) as other:
            other.execute(sql.SQL("SELECT pg_terminate_backend({})").format(process))

    with between(crash), pytest.raises(OperationalError):
        read(reader)
    connection.close()
    assert read(reader) == home_ids(reader.pk)


def test_behind_a_pooler_nothing_is_remembered(db: None) -> None:
    """Another server process may answer."""
    connection.ensure_connection()
    process = connection.connection.info.backend_pid
    assert [completions.may_have_completed(5, process + 1) for _ in range(3)] == [True, True, True]
    assert [completions.may_have_completed(last, process) for last in (5, 5, 6, 6)] == [True, False, True, False]


def test_every_completion_draws(reader: User, follow: Any, say: Say, workers: Workers) -> None:
    """The database draws, so every version does."""
    numbers = [fetch("SELECT last_value FROM timeline_completions")[0][0]]
    item = say(reader)
    Delivery.objects.filter(item=item).delete()
    numbers.append(fetch("SELECT last_value FROM timeline_completions")[0][0])
    User.objects.filter(pk=reader.pk).update(is_big_v=True)
    numbers.append(fetch("SELECT last_value FROM timeline_completions")[0][0])
    User.objects.filter(pk=reader.pk).update(is_big_v=False)
    numbers.append(fetch("SELECT last_value FROM timeline_completions")[0][0])
    assert numbers[0] < numbers[1] == numbers[2] < numbers[3]


@pytest.mark.slow
def test_windows_read_again_show_nothing_that_postgresql_did_not_know_yet(
    follow: Any, say: Say, workers: Workers
) -> None:
    """Only the second of two new items is delivered."""
    reader, friend, other = seen(), seen(), seen()
    for sender in (friend, other):
        follow(reader, sender)
    for _ in range(2):
        read(reader)
        workers.work()
    ids = [say(friend).pk]

    def complete() -> None:
        workers.work()
        ids.insert(0, say(other).pk)
        workers.work()

    def publish() -> None:
        say(friend)
        workers.queue.clear()
        say(other)
        workers.work()

    read(reader)
    with read_again_after(publish, complete):
        page = read(reader)
    assert page == ids, "neither of the two: the first is not skipped"
    assert read(reader) == home_ids(reader.pk)
    assert len(home_ids(reader.pk)) == 4


@pytest.mark.slow
def test_windows_read_again_are_no_reason_to_forget_what_is_visible_again(
    follow: Any, say: Say, workers: Workers, feeds: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process pauses between PostgreSQL's answer and the second read."""
    monkeypatch.setattr(window, "FORGET_SECONDS", 0.1)
    monkeypatch.setattr(fanout, "AGAIN_AFTER", timedelta(seconds=0.2))
    reader, friend = seen(), seen()
    follow(reader, friend)
    for _ in range(2):
        read(reader)
        workers.work()
    item, _ = say(friend), say(friend)
    workers.work()
    read(reader)
    items.delete(item=item)
    name, member = keys.inbox(reader.pk), f"{friend.pk}:{item.pk}"
    assert feeds.zscore(name, member) == item.pk

    def complete() -> None:
        say(friend)
        workers.work()

    def restore() -> None:
        items.restore(item=item)
        time.sleep(0.3)  # longer than FORGET_SECONDS and AGAIN_AFTER
        assert fanout.fan_out(item.pk), "it is delivered again"

    with read_again_after(restore, complete):
        read(reader)
    assert feeds.zscore(name, member) == item.pk
    assert read(reader) == home_ids(reader.pk)
