import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from discover import impressions
from discover.feed import load_more, refresh
from discover.models import IssuedPage
from storage.connections import feeds_for_tasks
from tests.support.crowds import Crowd
from tests.support.effort import tries
from tests.support.factories import ItemFactory, UserFactory
from tests.support.servers import Valkey, restart
from tests.support.sites import Worker, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(400)]

POSTS = 1_500
READERS = 3
SECONDS = tries(5, 12)


@pytest.fixture
def readers() -> list[User]:
    senders = UserFactory.create_batch(POSTS // 5)
    ItemFactory.create_batch(POSTS // 2, sender=senders[0])
    for number in range(POSTS // 2):
        ItemFactory.create(sender=senders[number % len(senders)])
    return UserFactory.create_batch(READERS)


def issued(reader: User) -> list[int]:
    """The items of all pages, including repeated ones."""
    pages = IssuedPage.objects.filter(user=reader).values_list("item_ids", flat=True)
    return [item_id for page in pages for item_id in page]


@pytest.mark.long
def test_nothing_comes_twice_whatever_happens_to_redis(readers: list[User], feeds_server: Valkey) -> None:
    got: dict[int, Counter[str]] = {reader.pk: Counter() for reader in readers}
    named: dict[str, list[str]] = {}
    lock = threading.Lock()
    crowd = Crowd()

    def pull(chance: random.Random) -> None:
        reader = chance.choice(readers)
        name = f"{reader.pk}-{chance.randrange(200)}" if chance.random() < 0.3 else None
        page = chance.choice([refresh, load_more, load_more])(reader, limit=5, request_id=name)
        ids = [item.id for item in page.items]
        with lock:
            if name is None:
                got[reader.pk].update(ids)
            else:
                assert named.setdefault(name, ids) == ids

    for seed in range(6):
        crowd.add(pull, seed)
    chance = random.Random(99)  # noqa: S311 (chance)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(crowd.run, SECONDS, lambda: crowd.done > 50)
        while not running.done():  # the server ends with the thread that started it
            time.sleep(chance.uniform(0.2, 0.6))  # random pauses, like a crowd's
            if chance.random() < 0.2:
                restart(feeds_server)
            else:
                feeds_for_tasks().flushall()
        running.result()
    assert crowd.done > 50
    for reader in readers:
        counts = Counter(issued(reader))
        assert counts, "they got something"
        assert max(counts.values()) == 1
        assert set(got[reader.pk].values()) <= {1}
        assert {int(item_id) for item_id in got[reader.pk]} <= counts.keys()


@pytest.mark.long
@pytest.mark.slow
def test_recorders_killed_amid_their_work_lose_nothing(readers: list[User], worker: Worker) -> None:
    reader = readers[0]
    for _ in range(2):
        for _ in range(20):
            load_more(reader, limit=5)
        worker.start()
        until(lambda: IssuedPage.objects.filter(is_recorded=True).exists(), 150)
        worker.kill()
        # As if a recorder died between the filter and the mark.
        IssuedPage.objects.filter(pk__in=IssuedPage.objects.values("pk")[:5]).update(is_recorded=False)
    worker.start()
    until(lambda: not IssuedPage.objects.filter(is_recorded=False).exists(), 150)
    ids = issued(reader)
    assert impressions.shown_among(reader.pk, ids, today=timezone.now().date()) == set(ids)
    tomorrow = timezone.now() + timedelta(days=1)
    IssuedPage.objects.all().delete()
    assert not {int(item.id) for item in refresh(reader, limit=100, now=tomorrow).items} & set(ids)
