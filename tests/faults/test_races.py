import random
import time
from collections import Counter, deque

import pytest
from django.utils import timezone

from accounts.levels import big_v
from accounts.models import User
from items import actions as items
from relations import actions as relations
from runtime.embedded import wait_for
from storage.connections import feeds_for_tasks
from tests.support.crowds import Crowd
from tests.support.effort import tries
from tests.support.factories import UserFactory
from tests.support.sites import Worker, until, walked
from timeline.check import differences
from timeline.home import home_page
from timeline.models import Backfill, Delivery
from timeline.oracle import home_ids

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

SECONDS = tries(6, 15)
BACKLOG = 40
"""Publishers wait, so the worker finds time to build windows."""
PEOPLE = 12
MEND_SECONDS = 3
"""Pause between two losses, unless a window is read again earlier."""


@pytest.mark.long
@pytest.mark.slow
def test_nothing_is_lost_between_people_workers_and_losses(worker: Worker) -> None:  # noqa: C901 (one crowd)
    people = [UserFactory(last_seen_at=timezone.now()) for _ in range(PEOPLE)]
    stars, readers = people[:3], people[3:]
    fickle = readers[4:]  # the others keep their relations and inboxes
    # Always followed: must be in every home.
    for reader in readers:
        for star in stars:
            relations.follow(follower=reader, followee=star)
    said: deque[int] = deque(maxlen=200)
    kinds: Counter[str] = Counter()
    worker.start()
    items.publish(sender=User.objects.get(pk=stars[0].pk), content={"text": "words"})
    until(lambda: not Delivery.objects.exists(), 150)

    def windows_read() -> int:
        return kinds["inbox"] + kinds["inbox+pending"]

    def breathe(chance: random.Random) -> None:
        time.sleep(chance.random() / 10)  # random pauses, like a crowd's
        if Delivery.objects.count() > BACKLOG:
            time.sleep(0.5)  # BACKLOG: publishing waits for the worker

    def publish(chance: random.Random) -> None:
        item = items.publish(sender=User.objects.get(pk=chance.choice(stars).pk), content={"text": "words"})
        said.append(item.pk)
        breathe(chance)

    def relate(chance: random.Random) -> None:
        breathe(chance)
        one, other = chance.sample(fickle, 2)
        verb = chance.choice([relations.follow, relations.unfollow])
        verb(follower=one, followee=other)
        if chance.random() < 0.3:
            relations.mute(muter=one, muted=other)
            relations.unmute(muter=one, muted=other)
        items.publish(sender=User.objects.get(pk=one.pk), content={"text": "words"})

    def read(chance: random.Random) -> None:
        """Everything published before the read is there, unless newer items push it out."""
        before = list(said)
        page = home_page(User.objects.get(pk=chance.choice(readers).pk), limit=100)
        kinds["+".join(page.sources)] += 1
        shown = {int(item.id) for item in page.items}
        missing = [item_id for item_id in before if item_id > min(shown) and item_id not in shown]
        assert not missing, page.sources

    def lose(chance: random.Random) -> None:
        time.sleep(chance.random())
        before = windows_read()
        wait_for(lambda: windows_read() > before, MEND_SECONDS)
        client = feeds_for_tasks()
        if chance.random() < 0.2:
            client.flushall()
        elif key := client.randomkey():
            client.delete(key)

    def promote(chance: random.Random) -> None:
        time.sleep(chance.random())
        star = User.objects.get(pk=chance.choice(stars).pk)
        chance.choice([big_v.make_big_v, big_v.demote])(user=star)

    crowd = Crowd()
    for seed, act in enumerate([publish, publish, relate, relate, read, read, read, lose, promote]):
        crowd.add(act, seed)
    crowd.run(SECONDS, lambda: min(windows_read(), kinds["sql"]) > 20)
    assert windows_read() > 20, kinds
    assert kinds["sql"] > 20, kinds

    until(lambda: not Delivery.objects.exists(), 150)
    until(lambda: not Backfill.objects.filter(finished_at=None, cancelled_at=None).exists(), 150)
    for person in people:
        # A lost build expires after a minute.
        until(lambda person=person: home_page(User.objects.get(pk=person.pk)).sources != ["sql"], 90)  # type: ignore[misc]
    assert list(differences([person.pk for person in people])) == []
    for person in people:
        assert walked(person) == home_ids(person.pk)
