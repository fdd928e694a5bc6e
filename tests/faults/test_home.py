import signal
import time

import pytest

from accounts.models import User
from items.models import Item
from storage import keys
from storage.connections import feeds_breaker, feeds_for_tasks, pipelined
from tests.support.effort import tries
from tests.support.factories import say
from tests.support.patience import SHORT, waits_once_a_second
from tests.support.servers import Valkey, dead, frozen, restart
from tests.support.sites import FOLLOWERS, Worker, until
from timeline.check import differences
from timeline.home import home_page
from timeline.models import Delivery
from timeline.oracle import home_ids

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(400)]


def fans() -> list[User]:
    return list(User.objects.filter(username__startswith="fan").order_by("pk"))


def read(user: User) -> list[int]:
    return [int(item.id) for item in home_page(User.objects.get(pk=user.pk)).items]


def delivered(sender: User, item: Item) -> int:
    member = f"{sender.pk}:{item.pk}"
    replies = pipelined(feeds_for_tasks(), [("ZSCORE", keys.inbox(fan.pk), member) for fan in fans()])
    return sum(reply is not None for reply in replies)


@pytest.mark.long
def test_workers_killed_amid_fan_outs_lose_nothing(star: User, worker: Worker) -> None:
    worker.start()
    first = say(star)
    until(lambda: not Delivery.objects.exists(), 150)
    partial = 0
    for _ in range(tries(1, 3)):
        worker.stand(signal.SIGSTOP)  # so that it is killed before it has done everything
        published = [say(star) for _ in range(20)]
        worker.stand(signal.SIGCONT)
        until(lambda some=published: any(delivered(star, item) for item in some), 150)  # type: ignore[misc]
        worker.kill()
        partial += Delivery.objects.count()
        expected = home_ids(fans()[0].pk)[:20]
        assert expected[0] == published[-1].pk
        assert all(read(fan) == expected for fan in (fans()[0], fans()[-1])), "while nobody delivers"
        worker.start()
    assert partial > 0, "the workers were killed while they had work"
    until(lambda: not Delivery.objects.exists(), 150)
    assert delivered(star, first) == FOLLOWERS
    assert delivered(star, Item.objects.latest("id")) == FOLLOWERS
    assert list(differences([fan.pk for fan in fans()])) == []


@pytest.mark.long
@pytest.mark.slow
def test_publishing_with_the_broker_dead(star: User, worker: Worker, broker_server: Valkey) -> None:
    with dead(broker_server):
        start = time.monotonic()
        item = say(star)
        assert time.monotonic() - start < SHORT
        assert read(fans()[7]) == [item.pk]
    worker.start()
    until(lambda: not Delivery.objects.exists(), 150)
    assert delivered(star, item) == FOLLOWERS


@pytest.mark.long
def test_publishing_with_the_broker_frozen(star: User, broker_server: Valkey) -> None:
    with frozen(broker_server):
        start = time.monotonic()
        item = say(star)
        assert time.monotonic() - start < SHORT
        start = time.monotonic()
        assert read(fans()[7]) == [item.pk]
        assert time.monotonic() - start < SHORT


@pytest.mark.slow
@pytest.mark.long
def test_the_broker_killed_while_workers_run(star: User, worker: Worker, broker_server: Valkey) -> None:
    worker.start()
    say(star)
    until(lambda: not Delivery.objects.exists(), 150)
    restart(broker_server)
    item = say(star)
    until(lambda: worker.keep() and not Delivery.objects.exists(), 150)
    assert delivered(star, item) == FOLLOWERS


@pytest.mark.slow
def test_reading_and_publishing_with_the_feeds_frozen(star: User, feeds_server: Valkey) -> None:
    first = say(star)
    fan = fans()[7]
    assert read(fan) == [first.pk]
    with frozen(feeds_server):
        start = time.monotonic()
        page = home_page(fan)
        assert time.monotonic() - start < SHORT
        assert (page.sources, [int(item.id) for item in page.items]) == (["sql"], [first.pk])
        start = time.monotonic()
        second = say(star)
        assert time.monotonic() - start < SHORT
        start = time.monotonic()
        assert read(fan) == [second.pk, first.pk]
        assert time.monotonic() - start < SHORT
    feeds_breaker.reset()
    assert read(fan) == [second.pk, first.pk]


@pytest.mark.long
@pytest.mark.slow
def test_an_outage_costs_one_wait_not_one_a_request(star: User, feeds_server: Valkey) -> None:
    with frozen(feeds_server), waits_once_a_second():
        for _ in range(20):
            home_page(star)


@pytest.mark.slow
@pytest.mark.long
def test_feeds_that_come_back_empty(star: User, worker: Worker, feeds_server: Valkey) -> None:
    published = [say(star).pk for _ in range(30)][::-1]
    worker.start()
    until(lambda: not Delivery.objects.exists(), 150)
    restart(feeds_server)
    fan = fans()[7]
    page = home_page(fan)
    assert (page.sources, [int(item.id) for item in page.items]) == (["sql"], published[:20]), "at once"
    # A lost build expires after a minute.
    until(lambda: worker.keep() and home_page(fan).sources == ["inbox"], 90)
    assert read(fan) == published[:20]


@pytest.mark.long
@pytest.mark.slow
def test_the_feeds_killed_amid_fan_outs(star: User, worker: Worker, feeds_server: Valkey) -> None:
    worker.start()
    say(star)
    until(lambda: not Delivery.objects.exists(), 150)
    published = [say(star).pk for _ in range(20)]
    restart(feeds_server)
    published += [say(star).pk for _ in range(5)]
    assert read(fans()[7]) == published[::-1][:20]
    until(lambda: not Delivery.objects.exists(), 150)
    assert not Delivery.objects.parked().exists()
    assert read(fans()[7]) == published[::-1][:20]
    assert list(differences([fan.pk for fan in fans()])) == []
