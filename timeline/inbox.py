"""The inbox: the newest items of a reader's home, pushed by fan-out. And its tail, pulled below the inbox's floor.

A low level takes no pushes from big-Vs: pages merge their outboxes. When the level rises, `deepen` adds what is missing
from a snapshot, lowers the floor, and writes the *push generation* under which the inbox takes pushes. Lowering a level
changes the user's generation. So pages trust the window, not the level:

- The level is committed, then the reader joins the active fans, then the snapshot is taken. So later big-V items are
  pushed.
- The window refuses a delivery below the floor. That step removes the deepening's token, like every trim, and the
  deepening restarts.
- The tail is dropped before the deepening ends, because it got no big-V items. Pages read it only at or below the
  inbox's floor, so a lower floor does no harm.
"""

import secrets
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

import redis
from django.conf import settings

from accounts.levels import policy
from storage import construction, keys
from storage.connections import (
    Command,
    feeds_for_tasks,
    fetch,
    pipelined,
    register_script,
)
from storage.construction import BuiltWindow, WindowSnapshot
from storage.queue import task
from storage.window import (
    BUILD_SECONDS,
    RUN,
    Slice,
    WindowEntry,
    scores_and_members,
    to_entries,
    to_number,
    to_score,
)
from timeline import active_fans
from timeline.pull import pull_entries

EPOCH_TRIES = 3
"""Snapshots to try for one build. A follow or a new policy meanwhile invalidates a snapshot."""
BUILT_FOR = f"""
    SELECT CASE WHEN {policy.has_inbox()} THEN u.level ELSE 0 END, {policy.EPOCH}, {policy.PUSH_GENERATION}
    FROM accounts_user u WHERE u.id = %s
"""

# KEYS[1]; ARGV: epoch, seconds to deepen, a number below 4096. Replies the token, an id: milliseconds since 2000 and
# the number. Nil if the inbox is not in use or is being deepened.
BEGIN_DEEPENING = register_script(
    RUN
    + """
    local key = KEYS[1]
    local floor = redis.call('ZSCORE', key, 'floor')
    if not floor or floor == 'inf' or not redis.call('ZSCORE', key, run()) then return false end
    if tonumber(redis.call('ZSCORE', key, 'epoch')) ~= -tonumber(ARGV[1]) then return false end
    local time = redis.call('TIME')
    local now = (time[1] - 946684800) * 1000 + math.floor(time[2] / 1000)
    local begun = redis.call('ZSCORE', key, 'deepen')
    if begun and math.abs(now + tonumber(begun) / 4096) < ARGV[2] * 1000 then return false end
    local token = string.format('%.0f', now * 4096 + ARGV[3])
    redis.call('ZADD', key, '-' .. token, 'deepen')
    return token
    """
)
# ARGV: token, epoch, floor, TTL in seconds, push generation or 0, then score and member in turn. Newer entries stay.
DEEPEN = register_script(
    RUN
    + """
    local key = KEYS[1]
    local begun, epoch = redis.call('ZSCORE', key, 'deepen'), redis.call('ZSCORE', key, 'epoch')
    if not begun or tonumber(begun) ~= -tonumber(ARGV[1]) or tonumber(epoch) ~= -tonumber(ARGV[2]) then return 0 end
    if redis.call('ZSCORE', key, 'floor') == 'inf' or not redis.call('ZSCORE', key, run()) then return 0 end
    for first = 6, #ARGV, 1000 do
        redis.call('ZADD', key, unpack(ARGV, first, math.min(first + 999, #ARGV)))
    end
    redis.call('ZREM', key, 'deepen', 'pushes')
    redis.call('ZREMRANGEBYSCORE', key, 0, ARGV[3])
    redis.call('ZADD', key, ARGV[3], 'floor')
    if ARGV[5] ~= '0' then redis.call('ZADD', key, -tonumber(ARGV[5]), 'pushes') end
    redis.call('EXPIRE', key, ARGV[4])
    return 1
    """
)

# KEYS[1]; ARGV: from (exclusive), count, epoch or 0 for any, token, seconds to build. Puts a tail that is too short
# under construction.
READ_TAIL = register_script(
    RUN
    + """
    local key = KEYS[1]
    local floor = redis.call('ZSCORE', key, 'floor')
    local top = redis.call('ZSCORE', key, 'top')
    local epoch = redis.call('ZSCORE', key, 'epoch')
    if floor and top and redis.call('ZSCORE', key, run())
            and (ARGV[3] == '0' or tonumber(epoch) == -tonumber(ARGV[3])) and tonumber(ARGV[1]) <= tonumber(top)
            and tonumber(ARGV[1]) > tonumber(floor) then
        local entries = redis.call('ZRANGE', key, '(' .. ARGV[1], '(' .. floor, 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[2])
        if #entries == tonumber(ARGV[2]) or tonumber(floor) == 0 then return {floor, entries, epoch} end
    end
    redis.call('DEL', key)
    redis.call('ZADD', key, 'inf', 'build:' .. ARGV[4], 'inf', run())
    redis.call('EXPIRE', key, ARGV[5])
    return false
    """
)
# ARGV: token, epoch, floor, top, TTL in seconds, then score and member in turn
COMPLETE_TAIL = register_script(
    RUN
    + """
    local key = KEYS[1]
    local this = run()
    if not redis.call('ZSCORE', key, 'build:' .. ARGV[1]) or not redis.call('ZSCORE', key, this) then return 0 end
    redis.call('DEL', key)
    redis.call('ZADD', key, -tonumber(ARGV[2]), 'epoch', ARGV[3], 'floor', ARGV[4], 'top', 'inf', this, unpack(ARGV, 6))
    redis.call('EXPIRE', key, ARGV[5])
    return 1
    """
)


class Inbox(BuiltWindow):
    """A reader's inbox. Its epoch is policy.EPOCH."""

    __slots__ = ()

    def __init__(self, user_id: int) -> None:
        super().__init__(user_id, keys.inbox(user_id))

    def build_later(self, token: str) -> bool:
        """Have a worker build it."""
        return bool(materialise.delay(self.owner, token))

    def begin_deepening(self, epoch: int) -> Command:
        """Command that begins a deepening and replies its token.

        Replies nil if the inbox is not in use or is being deepened.
        """
        return ("EVALSHA", BEGIN_DEEPENING, 1, self.key, epoch, BUILD_SECONDS, secrets.randbelow(4096))

    def deepen(self, token: int, epoch: int, floor: int, entries: Iterable[WindowEntry], pushes: int) -> Command:
        """Add a snapshot's entries, complete above `floor`. `pushes`: the push generation, or 0.

        Replies 0 for an invalid `token`.
        """
        return ("EVALSHA", DEEPEN, 1, self.key, token, epoch, floor, self.ttl, pushes, *scores_and_members(entries))


class Tail:
    """The hundred entries pulled last below the inbox's floor. Complete above `floor` and below `top`.

    It never lacks a later item:
    - A delivery at or below the inbox's floor is refused and drops the tail. The floor only rises until the inbox is
      rebuilt, and `materialise` drops the tail before that.
    - It is written only if the mark of `read_command` is still there, set before the inbox was read. So no inbox with a
      lower floor can be built unnoticed.
    """

    LENGTH: ClassVar[int] = 100
    TTL_SECONDS: ClassVar[int] = 300
    """How long a tail lives if nothing drops it."""
    __slots__ = ("key",)

    def __init__(self, user_id: int) -> None:
        self.key = keys.tail(user_id)

    def read_command(self, last_id: int, count: int, epoch: int, token: str) -> Command:
        """Read `count` entries below `last_id`, of this epoch or of any (0).

        If the tail is missing or too short, mark that `token` will pull it.
        """
        return ("EVALSHA", READ_TAIL, 1, self.key, last_id, count, epoch, token, BUILD_SECONDS)

    @staticmethod
    def slice(reply: list[Any] | None, count: int) -> Slice | None:
        """Parse the reply to `read_command`. None if the tail must be pulled."""
        if reply is None:
            return None
        floor = to_score(reply[0])
        ids, senders = to_entries(reply[1])
        bound = ids[-1] - 1 if len(ids) == count else floor
        return Slice(ids, senders, bound, floor, epoch=to_number(reply[2]), read_at=0, pushes=0)

    def complete(self, token: str, epoch: int, floor: int, top: int, entries: Iterable[WindowEntry]) -> Command:
        """Write the entries below `top`, unless something was delivered there."""
        below = (entry for entry in entries if entry.item_id < top)
        return (
            "EVALSHA",
            COMPLETE_TAIL,
            1,
            self.key,
            token,
            epoch,
            floor,
            top,
            self.TTL_SECONDS,
            *scores_and_members(below),
        )

    def drop(self) -> Command:
        """Delete the tail."""
        return ("UNLINK", self.key)


def cap_of(level: int) -> int:
    """The most entries in an inbox. 0: no inbox."""
    return int(settings.LEVEL_CAPS.get(level, 0))


def begin(user_id: int) -> bool:
    """Begin a missing inbox. True if a task is enqueued."""
    reader = _reader(user_id)
    return bool(reader.level) and reader.epoch is not None and construction.begin(Inbox(user_id), reader.epoch)


@task("timeline.materialise_inbox")
def materialise(user_id: int, token: str) -> bool:
    """Fill the inbox that `token` began. True if it is in use.

    Checks the token first, because many queued tasks may be outdated. On an error of Redis, drops the inbox.
    """
    inbox = Inbox(user_id)
    try:
        if not construction.is_under_way(inbox, token):
            return False
        snapshot = _snapshot(user_id)
        return snapshot is not None and construction.finish(inbox, token, snapshot)
    except redis.RedisError:
        # Perhaps another node failed than the inbox's. Without the inbox, pages can begin it again.
        with suppress(redis.RedisError):
            pipelined(feeds_for_tasks(), [inbox.drop()])
        raise


@task("timeline.rise")
def deepen_or_build(user_id: int) -> bool:
    """Deepen the inbox to the raised level, or build it."""
    reader = _reader(user_id)
    if not reader.level or reader.epoch is None:
        return False
    client, inbox, token = feeds_for_tasks(), Inbox(user_id), secrets.token_hex(8)
    deepening = pipelined(client, [inbox.begin_deepening(reader.epoch)])[0]
    if deepening is not None:
        return deepen(user_id, int(deepening))
    return bool(pipelined(client, [inbox.begin(token, reader.epoch)])[0]) and materialise(user_id, token)


@task("timeline.deepen_inbox")
def deepen(user_id: int, token: int) -> bool:
    """Finish the deepening that `token` began. False if the token is gone or no inbox is allowed."""
    snapshot = _snapshot(user_id)
    if snapshot is None:
        return False
    inbox = Inbox(user_id)
    command = inbox.deepen(token, snapshot.epoch, snapshot.floor, snapshot.entries, snapshot.pushes)
    return bool(pipelined(feeds_for_tasks(), [command])[0])


class _Reader(NamedTuple):
    level: int
    epoch: int | None
    """None if no window may be used."""
    pushes: int


def _reader(user_id: int) -> _Reader:
    return fetch(BUILT_FOR, [user_id], into=_Reader._make)[0]


def _snapshot(user_id: int) -> WindowSnapshot | None:
    """Pull the entries for the inbox. None if no inbox is allowed, or the epoch changed too often.

    Before the pull, the epoch is read and the reader joins the active fans. So the window promises nothing later. If
    the epoch or push generation changed meanwhile, it tries again.
    """
    for _ in range(EPOCH_TRIES):
        reader = _reader(user_id)
        cap = cap_of(reader.level)
        if not cap or reader.epoch is None:
            return None
        if reader.pushes:
            active_fans.add(user_id)
        read_for, entries, floor = pull_entries(user_id, cap)
        if read_for == (reader.epoch, reader.pushes):
            # Before the inbox is used, and not in its pipeline: a cluster does not keep the order.
            pipelined(feeds_for_tasks(), [Tail(user_id).drop()])
            return WindowSnapshot(reader.epoch, floor, entries, cap, reader.pushes)
    return None
