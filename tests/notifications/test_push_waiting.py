"""What waits for devices: slow and dead ones, dead workers, and everything at once."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.models import User
from feedsite import celery
from items import actions as items
from live import actions as live
from notifications import actions as notifications
from notifications import tasks
from notifications.models import PushSubscription
from notifications.push import actions, messages, sending, waiting
from operation import gauges
from storage import quiet
from storage.connections import cache_breaker
from storage.queue import QUESTIONS
from tests.support.at_once import at_once
from tests.support.changed_settings import changed
from tests.support.factories import UserFactory, say
from tests.support.far_servers import FarServer, Say, answer
from tests.support.push_services import Device
from tests.support.sites import Worker, until
from web import outbound, rates

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

PAGE = "/settings/notifications/push"
TAKEN = answer(b"", status="201 Created")
TASKS = {
    "notifications.push": waiting.queue_pushes,
    "notifications.push_device": waiting.push_device,
    "notifications.push_trial": waiting.push_trial,
}


class Queue:
    """A broker's queue of push tasks. Says how many a device had at most."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waits: list[tuple[str, tuple[Any, ...]]] = []
        self.of_a_device = 0

    def send_task(self, name: str, args: Iterable[Any], *more: Any, **options: Any) -> bool:
        if name not in TASKS:
            return True
        with self.lock:
            self.waits.append((name, tuple(args)))
            devices = Counter(args for name, args in self.waits if name != "notifications.push")
            self.of_a_device = max(self.of_a_device, *devices.values(), 0)
        return True

    def step(self) -> bool:
        """Run a task. False if none waits."""
        with self.lock:
            if not self.waits:
                return False
            name, args = self.waits.pop(0)
        TASKS[name](*args)
        return True

    def work(self) -> None:
        while self.step():
            pass


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    queue = Queue()
    monkeypatch.setattr(celery.app, "send_task", queue.send_task)
    return queue


@pytest.fixture
def reader() -> User:
    return UserFactory(username="reader")


@pytest.fixture
def other() -> User:
    return UserFactory(username="other", display_name="Other")


@pytest.fixture
def client(client: Client, reader: User) -> Client:
    client.force_login(reader)
    return client


@pytest.fixture
def device(service: FarServer, client: Client, queue: Queue) -> Device:
    return subscribed(client, Device(service))


def subscribed(client: Client, device: Device) -> Device:
    answered = client.post("/api/v1/me/push", {**device.body, "words": "all"}, content_type="application/json")
    assert answered.status_code == 201
    return device


@pytest.fixture
def workers(queue: Queue) -> Iterator[Callable[[int], None]]:
    """Start threads that work until the test ends, and sweep as beat would."""
    ended, threads, errors = threading.Event(), list[threading.Thread](), list[Exception]()

    def work() -> None:
        try:
            while not ended.is_set():
                if not queue.step():
                    tasks.sweep_pushes()
                    time.sleep(0.02)
        except Exception as error:  # noqa: BLE001 (the test looks at it)
            errors.append(error)
        finally:
            connection.close()

    def start(number: int) -> None:
        threads.extend(threading.Thread(target=work) for _ in range(number))
        for thread in threads:
            thread.start()

    yield start
    ended.set()
    for thread in threads:
        thread.join()
    assert errors == []


def time_passes() -> None:
    """Claims and pauses end, and lost tasks are missed."""
    PushSubscription.objects.exclude(retry_at=None).update(retry_at=timezone.now())
    PushSubscription.objects.exclude(due_at=None).update(due_at=timezone.now())


def told_of(device: Device) -> int:
    """How many acts a device was told of."""
    more = [message["body"].partition("\nand ")[2].partition(" ")[0] for message in device.messages]
    return sum(1 + int(number or 0) for number in more)


def overdue() -> float:
    return gauges.oldest_waits()["pushes"]


def bodies(device: Device) -> list[str]:
    return [message["body"] for message in device.messages]


# --- Messages of several acts ----------------------------------------------------------------------------
def test_what_comes_while_a_device_is_slow_is_one_message(device: Device, queue: Queue, other: User) -> None:
    for number in range(3):
        say(other, f"@reader {number}")
    assert [name for name, _args in queue.waits] == ["notifications.push"] * 3
    queue.work()
    assert bodies(device) == ["@reader 2\nand 2 more"]
    newest = PushSubscription.objects.get().pushed[-1]
    assert [message["notification_id"] for message in device.messages] == [newest]
    assert queue.of_a_device == 1


def test_what_comes_while_a_message_is_sent_waits_for_the_next(device: Device, queue: Queue, other: User) -> None:
    assert device.service is not None

    def slow(write: Say) -> None:
        device.service.rules[device.path] = TAKEN  # type: ignore[union-attr]
        for number in range(2):
            say(other, f"@reader {number}")
        connection.close()
        waiting.queue_pushes([args[0][0] for _name, args in queue.waits])
        queue.waits.clear()
        connection.close()
        TAKEN(write)

    device.service.rules[device.path] = slow
    say(other, "@reader first")
    queue.work()
    assert bodies(device) == ["@reader first", "@reader 1\nand 1 more"]
    assert queue.of_a_device == 1


def test_only_acts_that_are_still_shown_are_counted(device: Device, queue: Queue, other: User) -> None:
    said = [say(other, f"@reader {number}") for number in range(5)]
    queue.step(), queue.step(), queue.step(), queue.step(), queue.step()
    items.delete(item=said[4])
    items.delete(item=said[1])
    first = PushSubscription.objects.get().waiting[0]
    notifications.mark_read(user=User.objects.get(username="reader"), up_to=first)
    queue.work()
    assert bodies(device) == ["@reader 3\nand 1 more"]


def test_nothing_is_sent_if_all_was_read_meanwhile(device: Device, queue: Queue, reader: User, other: User) -> None:
    say(other, "@reader")
    queue.step()
    notifications.mark_read(user=reader)
    queue.work()
    row = PushSubscription.objects.get()
    assert (device.messages, row.waiting, row.due_at) == ([], [], None)


def test_quiet_hours_begin_while_an_act_waits(device: Device, queue: Queue, reader: User, other: User) -> None:
    say(other, "@reader")
    queue.step()
    hour = timezone.now().hour
    actions.set_quiet_hours(user=reader, hours=(hour, (hour + 2) % 24))
    queue.work()
    assert device.messages == []


def test_words_that_a_device_may_not_show(client: Client, device: Device, queue: Queue, other: User) -> None:
    PushSubscription.objects.update(words="none")
    for number in range(2):
        say(other, f"@reader {number}")
    queue.work()
    assert bodies(device) == ["and 1 more"]


def test_a_message_of_many_is_no_longer(device: Device, queue: Queue, other: User) -> None:
    for _ in range(2):
        say(other, "@reader " + "x" * 400)
    queue.work()
    (message,) = device.messages
    assert len(message["body"]) == messages.BODY_LENGTH
    assert message["body"].endswith("…\nand 1 more")


def test_the_newest_of_too_many_stay(
    device: Device, queue: Queue, other: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "MOST", 3)
    for number in range(5):
        say(other, f"@reader {number}")
    queue.work()
    assert bodies(device) == ["@reader 4\nand 2+ more"]


def test_a_live_session_is_not_told_of_when_it_is_old(
    device: Device, queue: Queue, reader: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = UserFactory(display_name="Host")
    session = live.create(
        host=host, title="Cats live", starts_at=timezone.now() + timedelta(hours=1), now=timezone.now()
    )
    notifications.notify_of_session(session_id=session.pk, host_id=host.pk, user_ids=[reader.pk])
    queue.step()
    monkeypatch.setattr(sending, "LIFE", {"live": -1})
    queue.work()
    assert device.messages == []


# --- Attacks ---------------------------------------------------------------------------------------------
@pytest.mark.long
def test_mentions_in_a_row_for_slow_devices(
    service: FarServer, reader: User, other: User, queue: Queue, workers: Callable[[int], None], settings: Any
) -> None:
    settings.RATE_SCALE = 1e6
    devices = []
    for number in range(10):
        client = Client()
        client.force_login(reader)
        device = subscribed(client, Device(service, f"/send/{number}"))
        service.rules[device.path] = lambda write: (time.sleep(0.5), TAKEN(write))
        devices.append(device)
    workers(4)
    for number in range(60):
        say(other, f"@reader {number}")
    until(lambda: not PushSubscription.objects.exclude(due_at=None).exists() and not queue.waits, 60)
    print(f"{len(service.paths)} requests for 60 acts and 10 devices")
    assert [told_of(device) for device in devices] == [60] * 10
    assert len(service.paths) < 10 * 60 / 4
    assert queue.of_a_device == 1


def test_a_member_who_spent_their_time_waits_for_more(device: Device, queue: Queue, other: User, settings: Any) -> None:
    settings.RATES = {**settings.RATES, "outside_member": "1000/hour"}
    assert device.service is not None
    device.service.rules[device.path] = lambda write: (time.sleep(0.1), TAKEN(write))
    for number in range(3):
        say(other, f"@reader {number}")
        queue.work()
    row = PushSubscription.objects.get()
    assert bodies(device) == ["@reader 0"]
    assert (row.failing_since, row.tries, len(row.waiting)) == (None, 0, 2)
    assert row.retry_at is not None
    assert row.retry_at == row.due_at
    assert timezone.now() < row.retry_at <= timezone.now() + timedelta(hours=1)
    settings.RATES = {**settings.RATES, "outside_member": "50000/hour"}
    time_passes()
    tasks.sweep_pushes()
    queue.work()
    assert bodies(device) == ["@reader 0", "@reader 2\nand 1 more"]


def test_presses_of_the_button_at_once(client: Client, device: Device, queue: Queue, settings: Any) -> None:
    row = PushSubscription.objects.get()

    def press() -> list[int]:
        presser = Client()
        presser.cookies = client.cookies
        return [presser.post(f"{PAGE}/{row.pk}/trial").status_code for _ in range(10)]

    statuses = Counter(status for one in at_once(*[press] * 30) for status in one)
    # While a busy machine's cache server answers slowly, this process counts by itself, and lets five more pass.
    assert 5 <= statuses[302] <= 10
    assert statuses.total() == statuses[302] + statuses[429]
    assert queue.waits == [("notifications.push_trial", (row.pk,))]
    queue.work()
    assert bodies(device) == ["Push notifications work on this device."]
    settings.RATE_SCALE = 1e6
    assert set(at_once(*[press] * 5)[0]) == {302}
    assert len(queue.waits) == 1
    assert "A test is on its way to this device." in client.get(PAGE).content.decode()


def test_presses_of_the_button_without_the_cache_server(client: Client, device: Device, settings: Any) -> None:
    address = f"{PAGE}/{PushSubscription.objects.get().pk}/trial"
    rates.own.clear()
    cache_breaker.trip()
    try:
        assert Counter(client.post(address).status_code for _ in range(8)) == {302: 5, 429: 3}
    finally:
        cache_breaker.reset()
        rates.own.clear()


def test_a_failing_device_takes_no_test(client: Client, device: Device, queue: Queue) -> None:
    row = PushSubscription.objects.get()
    PushSubscription.objects.update(failing_since=timezone.now())
    answered = client.post(f"{PAGE}/{row.pk}/trial", follow=True).content.decode()
    assert "You can send a test once it works again." in answered
    assert "Test sent." not in answered
    assert f"{row.pk}/trial" not in answered
    assert queue.waits == []


def test_a_test_and_an_act_are_one_message(
    client: Client, device: Device, queue: Queue, reader: User, other: User
) -> None:
    row = PushSubscription.objects.get()
    client.post(f"{PAGE}/{row.pk}/trial")
    say(other, "@reader")
    queue.waits.reverse()
    queue.work()
    assert bodies(device) == ["@reader"]
    row.refresh_from_db()
    assert (row.trial_at, row.due_at) == (None, None)


def test_an_old_test_is_not_sent(client: Client, device: Device, queue: Queue) -> None:
    row = PushSubscription.objects.get()
    client.post(f"{PAGE}/{row.pk}/trial")
    PushSubscription.objects.update(trial_at=timezone.now() - sending.TRIAL_LIFE)
    queue.work()
    row.refresh_from_db()
    assert (device.messages, row.trial_at, row.due_at) == ([], None, None)


def test_a_device_that_hangs_keeps_no_other_waiting(
    service: FarServer, reader: User, other: User, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound, "SECONDS", 0.5)
    devices = []
    for number in range(3):
        client = Client()
        client.force_login(reader)
        devices.append(subscribed(client, Device(service, f"/send/{number}")))
    service.rules[devices[0].path] = lambda _write: time.sleep(1)
    for number in range(5):
        say(other, f"@reader {number}")
    began = time.monotonic()
    queue.work()
    assert time.monotonic() - began < 3
    assert [told_of(device) for device in devices] == [5, 5, 5]
    hanging, *sound = PushSubscription.objects.order_by("pk")
    assert (hanging.failing_since is not None, len(hanging.waiting), hanging.tries) == (True, 5, 1)
    assert {row.due_at for row in sound} == {None}


@pytest.mark.parametrize("status", ["201 Created", "500 Oops", "410 Gone"])
def test_a_device_that_is_removed_while_it_answers(
    client: Client, device: Device, queue: Queue, reader: User, other: User, status: str
) -> None:
    """The same browser has turned push messages on again."""
    assert device.service is not None

    def answers(write: Say) -> None:
        PushSubscription.objects.all().delete()
        subscribed(client, device)
        connection.close()
        answer(b"", status=status)(write)

    device.service.rules[device.path] = answers
    say(other, "@reader")
    queue.work()
    row = PushSubscription.objects.get()
    assert (row.failing_since, row.due_at, row.tries, row.pushed) == (None, None, 0, [])


# --- Workers ---------------------------------------------------------------------------------------------
def test_workers_at_once_send_one_message(device: Device, queue: Queue, other: User) -> None:
    assert device.service is not None
    device.service.rules[device.path] = lambda write: (time.sleep(0.3), TAKEN(write))
    say(other, "@reader")
    queue.step()
    row = PushSubscription.objects.get()
    assert at_once(*[partial(waiting.push_device, row.pk)] * 8) == [None] * 8
    assert bodies(device) == ["@reader"]


def test_acts_and_the_end_of_a_message_at_once(device: Device, queue: Queue, other: User) -> None:
    """No act is lost between the message's end and the next task, and none is told twice."""
    acts = [say(other, f"@reader {number}") for number in range(24)]
    pushes = [partial(waiting.queue_pushes, args[0]) for _name, args in queue.waits]
    queue.waits.clear()
    for start in range(0, len(acts), 6):
        at_once(*pushes[start : start + 6], queue.work, queue.work)
    queue.work()
    assert told_of(device) == 24
    assert PushSubscription.objects.get().due_at is None


def test_a_lost_task_is_missed(device: Device, queue: Queue, other: User) -> None:
    say(other, "@reader")
    queue.step()
    queue.waits.clear()
    assert not quiet.has_work(QUESTIONS["notifications.sweep_pushes"])
    PushSubscription.objects.update(due_at=timezone.now() - timedelta(seconds=90))
    assert overdue() == pytest.approx(90, abs=5)
    assert quiet.has_work(QUESTIONS["notifications.sweep_pushes"])
    assert at_once(*[waiting.sweep] * 3).count(1) == 1
    assert len(queue.waits) == 1
    queue.work()
    assert overdue() == 0
    assert bodies(device) == ["@reader"]
    assert not quiet.has_work(QUESTIONS["notifications.sweep_pushes"])


def test_the_sweep_waits_behind_what_it_may_send_again() -> None:
    """Elsewhere it would send a second task of each device while the lane is full."""
    celery.app.loader.import_default_modules()
    routes = {
        name: celery.app.amqp.router.route({}, name)["queue"].name for name in (*TASKS, "notifications.sweep_pushes")
    }
    assert len(set(routes.values())) == 1, routes


def test_a_task_that_the_broker_repeats_rings_once(
    device: Device, queue: Queue, other: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "PUSHED", 2)
    repeated: list[tuple[str, tuple[Any, ...]]] = []
    for number in range(4):
        say(other, f"@reader {number}")
        repeated += queue.waits
        queue.work()
        queue.waits += repeated
        queue.work()
    assert bodies(device) == ["@reader 0", "@reader 1", "@reader 2", "@reader 3"]
    row = PushSubscription.objects.get()
    assert (len(row.pushed), row.waiting, row.due_at) == (2, [], None)


def test_an_act_that_commits_late_is_pushed(device: Device, queue: Queue, other: User) -> None:
    """Its id is smaller than that of an act that was pushed."""
    for number in range(2):
        say(other, f"@reader {number}")
    first, second = (args for _name, args in queue.waits)
    queue.waits.clear()
    for args in (second, first):
        waiting.queue_pushes(*args)
        queue.work()
    assert bodies(device) == ["@reader 1", "@reader 0"]


def test_a_worker_that_came_back_too_late_sends_nothing(
    device: Device, queue: Queue, other: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(other, "@reader")
    monkeypatch.setattr(waiting, "CLAIM_LIFE", timedelta(seconds=2 * outbound.SECONDS))
    queue.work()
    assert device.messages == []


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_worker_that_dies_after_it_has_sent(
    device: Device, other: User, tmp_path: Path, queue: Queue, settings: Any
) -> None:
    """Its message rings a second time, and not a third."""
    assert device.service is not None
    environ = changed(OUTBOUND_TO_LOOPBACK=1, STORAGES=settings.STORAGES) | {
        "SSL_CERT_FILE": str(tmp_path / "server.pem")
    }
    worker = Worker(tmp_path, **environ)
    deaths = []

    def kill(_write: Say) -> None:
        worker.stand(signal.SIGKILL)
        deaths.append(worker.process.wait())  # type: ignore[union-attr]

    device.service.rules[device.path] = kill
    say(other, "@reader")
    queue.step()
    try:
        for number in (1, 2):
            time_passes()
            worker.start()
            until(lambda number=number: len(deaths) == number, 90)  # type: ignore[misc]
            row = PushSubscription.objects.get()
            assert (len(row.waiting), row.tries) == (1, number * waiting.TRY)
            assert row.retry_at is not None
            assert row.retry_at > timezone.now()
        time_passes()
        worker.start()
        until(lambda: PushSubscription.objects.get().due_at is None, 90)
        queue.waits.clear()
        device.service.rules[device.path] = TAKEN
        say(other, "@reader next")
        queue.step()
        time_passes()
        until(lambda: len(device.messages) == 3, 90)
    finally:
        worker.kill()
        print((tmp_path / "worker.log").read_text()[-10_000:])  # shown if the test failed
    assert bodies(device) == ["@reader", "@reader", "@reader next"]
