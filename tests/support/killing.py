"""`python -m tests.support.killing SEED KILLS`: kill -9 processes that publish, deliver, change, follow and sweep.
`python -m tests.support.killing come_back`: kill a returning process at the places numbered on stdin.

Django is loaded and no connection open. Each kill takes a forked child, which repeats its act. Half of them kill
themselves before or after a random call to PostgreSQL, the feeds or the broker. The others are killed from outside at a
random time.

After each `BATCH` kills it prints a JSON line (places of death, errors) and waits for a line.
"""

import json
import os
import random
import secrets
import select
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import django

from tests.support.windows import epoch_of

django.setup()

import amqp  # noqa: E402
import psycopg  # noqa: E402
from django.db import connection  # noqa: E402
from redis.connection import AbstractConnection  # noqa: E402

from accounts.levels import actions as levels  # noqa: E402
from accounts.levels import big_v  # noqa: E402
from accounts.models import User  # noqa: E402
from items import actions as items  # noqa: E402
from items.models import LISTED, Item, Status  # noqa: E402
from relations import actions as relations  # noqa: E402
from runtime.embedded import die_with_parent  # noqa: E402
from storage import deliveries  # noqa: E402
from storage.connections import feeds, feeds_for_tasks, pipelined  # noqa: E402
from timeline import backfill, fanout  # noqa: E402
from timeline.home import home_page  # noqa: E402
from timeline.inbox import Inbox, deepen_or_build, materialise  # noqa: E402
from timeline.models import Backfill, Delivery, DeliveryRange  # noqa: E402

BATCH = 20
PATIENCE = 60
DEATHS_OF_ONE = 3
"""A fifth attempt would park it as poison."""

Act = Callable[[random.Random], object]


# --- Acts of the processes -------------------------------------------------------------------------------
def a_sender(chance: random.Random) -> User:
    return User.objects.get(username=chance.choice(["star", "star", "big", "friend"]))


def publish(chance: random.Random) -> None:
    items.publish(sender=a_sender(chance), content={"text": "words"})


def deliver(chance: random.Random) -> None:
    waiting = Delivery.objects.filter(parked_at=None, attempts__lt=DEATHS_OF_ONE).values_list("pk", flat=True)
    if not waiting:
        publish(chance)
        return
    item_id = chance.choice(list(waiting))
    if not fanout.fan_out(item_id):
        for part in DeliveryRange.objects.filter(delivery_id=item_id).values_list("pk", flat=True):
            fanout.fan_out_range(part)


def change(chance: random.Random) -> None:
    item = chance.choice(list(Item.objects.order_by("-id")[:20]))
    verb = chance.randrange(4)
    if verb == 0 or item.status == Status.DELETED:
        (items.restore if item.status == Status.DELETED else items.delete)(item=item)
    elif verb == 1:
        items.edit(item=item, content={"text": "other words"})
    else:
        items.change_visibility(item=item, visibility=chance.choice(LISTED))


def relate(chance: random.Random) -> None:
    """Change it, then fill the invalidated window, as reader and worker do."""
    reader = chance.choice(list(User.objects.filter(username__startswith="fickle")))
    sender = a_sender(chance)
    verb = chance.choice([relations.follow, relations.unfollow])
    verb(follower=reader, followee=sender)
    if chance.random() < 0.3:
        relations.mute(muter=reader, muted=sender)
        relations.unmute(muter=reader, muted=sender)
    reader.refresh_from_db()
    home_page(reader)
    token = secrets.token_hex(8)
    pipelined(feeds(), [Inbox(reader.pk).drop(), Inbox(reader.pk).begin(token, epoch_of(reader.pk))])
    materialise(reader.pk, token)


def sweep(chance: random.Random) -> None:
    deliveries.sweep(Delivery, fanout.fan_out)
    backfill.sweep()
    big = User.objects.get(username="big")
    chance.choice([big_v.make_big_v, big_v.demote])(user=big)
    for pk in Backfill.objects.filter(finished_at=None, cancelled_at=None).values_list("pk", flat=True):
        backfill.run(pk)


def come_back(chance: random.Random) -> None:
    """The page, the recorded visit, the deepening, and the next page."""
    reader = User.objects.get(username="away")
    home_page(reader)
    levels.touch([reader.pk])
    deepen_or_build(reader.pk)
    home_page(User.objects.get(pk=reader.pk))


ACTS: dict[str, Act] = {each.__name__: each for each in (publish, deliver, change, relate, sweep, come_back)}
SHARES = ["publish"] * 3 + ["deliver"] * 4 + ["change", "relate", "sweep"]


# --- How they die ----------------------------------------------------------------------------------------
class Fuse:
    """Counts calls to servers, and kills at one of them."""

    def __init__(self, told: int, at: int | None) -> None:
        self.told = told
        self.at = at
        self.passed = 0
        self.lay(psycopg.Cursor, "execute", lambda *_: "a statement")
        self.lay(psycopg.Connection, "commit", lambda *_: "a commit")
        self.lay(AbstractConnection, "send_packed_command", _said)
        self.lay(amqp.Channel, "_basic_publish", lambda *_: "an enqueuing")  # of what RabbitMQ confirms

    def lay(self, owner: Any, method: str, name: Callable[..., str]) -> None:
        run = getattr(owner, method)

        def watched(*args: Any, **kwargs: Any) -> Any:
            self.pass_by(f"before {name(*args)}")
            result = run(*args, **kwargs)
            self.pass_by(f"after {name(*args)}")
            return result

        setattr(owner, method, watched)

    def pass_by(self, place: str) -> None:
        self.passed += 1
        if self.passed == self.at:
            os.write(self.told, place.encode())
            os.kill(os.getpid(), signal.SIGKILL)


def _said(connection: Any, command: Any, *_: Any) -> str:
    words = b"".join(command) if isinstance(command, list | tuple) else command
    return "an enqueuing" if b"timeline." in words else "a word to Redis"


def child(act: Act, seed: str, told: int, at: int | None, *, once: bool) -> None:
    """Never returns. Reports that it is ready, then its place of death or the number of places."""
    chance = random.Random(seed)  # noqa: S311 (chance)
    try:
        connection.ensure_connection()
        feeds_for_tasks().ping()
        os.write(told, b"ready\n")
        fuse = Fuse(told, at)
        act(chance)
        while not once:
            act(chance)
        os.write(told, str(fuse.passed).encode())
    except BaseException:  # noqa: BLE001 (the parent is told by the exit code)
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def fork(kind: str, seed: str, at: int | None = None, *, once: bool = False) -> tuple[int, int]:
    """Returns it with its report pipe, when ready."""
    hears, tells = os.pipe()
    bind = die_with_parent(signal.SIGKILL)
    pid = os.fork()
    if pid == 0:
        os.close(hears)
        bind()
        child(ACTS[kind], seed, tells, at, once=once)
    os.close(tells)
    ready = select.select([hears], [], [], PATIENCE)[0] and os.read(hears, 6) == b"ready\n"
    if not ready:
        raise RuntimeError(f"the child for {kind} did not begin")
    return pid, hears


def end(pid: int, hears: int) -> tuple[bool, str]:
    """Kill it if needed. Returns whether it was killed, and its report."""
    select.select([hears], [], [], PATIENCE)  # it is closed with the child
    told = os.read(hears, 200).decode()
    with suppress(ProcessLookupError):
        if not told.isdecimal():
            os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    os.close(hears)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, told


def kill_where_told(kind: str) -> None:
    """A child dies at each number on stdin. Prints its report, or for 0 the number of places."""
    for line in sys.stdin:
        killed, told = end(*fork(kind, kind, int(line) or None, once=True))
        if killed == told.isdecimal():
            raise RuntimeError(f"{kind} did not run to place {line}")
        print(told, flush=True)


def kill_at_random(seed: str, kills: int) -> None:
    chance = random.Random(seed)  # noqa: S311 (chance)
    lengths: dict[str, tuple[int, float]] = {}
    for kind in dict.fromkeys(SHARES):
        begin = time.monotonic()
        killed, told = end(*fork(kind, f"{seed} {kind}", once=True))
        if killed or not told.isdecimal():
            raise RuntimeError(f"{kind} does not run to its end")
        lengths[kind] = int(told), time.monotonic() - begin
    places: Counter[str] = Counter()
    for number in range(kills):
        kind = chance.choice(SHARES)
        places_of, seconds = lengths[kind]
        if number % 2:
            killed, told = end(*fork(kind, f"{seed} {number}", chance.randrange(1, places_of + 1)))
        else:
            pid, hears = fork(kind, f"{seed} {number}")
            time.sleep(chance.random() * seconds)
            os.kill(pid, signal.SIGKILL)
            killed, told = end(pid, hears)
            told = told or "at some time"
        places[f"{kind} {told}" if killed else "not killed"] += 1
        if number % BATCH == BATCH - 1:
            print(json.dumps(places), flush=True)
            sys.stdin.readline()


if __name__ == "__main__":
    if sys.argv[1] in ACTS:
        kill_where_told(sys.argv[1])
    else:
        kill_at_random(sys.argv[1], int(sys.argv[2]))
