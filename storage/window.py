"""A window: a ZSET of the newest entries of a timeline that knows down to where it is complete.

| member | score | meaning |
|---|---|---|
| `{sender}:{item}` | the item's id | an entry |
| `floor` | an id | complete above it; entries at or below it do not count |
| `epoch` | minus the epoch | what it was built for (storage.draws); other readers do not use it |
| `pushes` | minus a number | the push generation under which it takes big-Vs' items (timeline.inbox) |
| `deepen` | minus a number | the token of a running deepening (timeline.inbox) |
| `run:{id}` | +infinity | the server's run in which it was built (see `RUN`) |
| `build:{token}` | +infinity | under construction; `floor` is +infinity until then |

A key without `floor` is no window. Ids are positive, so the negative scores are below all entries.

How a window stays exact if its builder dies at any point:

- `begin` comes before the builder's snapshot, and a window under construction takes deliveries. So an item is in the
  snapshot or is delivered.
- `complete` needs the token of `begin`, so it refuses a window that was dropped or begun again.
- A server may lack deliveries after a restart, a failover or a move of the slot. That is another run, so the window is
  not used.
- Trimming raises the floor in the same step.
- Each step that removes entries at or below the floor removes `deepen`, because a running deepening may need them.
- `trim` removes what a delivery put below the floor or into a key that is no window.
- `forget` (lazy delete) is refused for another epoch, or later than `FORGET_SECONDS` after its reading, when an item
  may have been delivered again.

A change of what a member means raises policy.FORMAT.

See docs/decisions.md: Windows are valid for one epoch.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, ClassVar

import redis
from django.conf import settings

from storage.connections import Command, keys_in_script, pipelined, register_script, replies_of
from storage.replies import borrowed_connection

INFINITY = 2**53
"""Above every id: the floor of an unusable window, and where a first page begins."""
BUILD_SECONDS = 60
FORGET_SECONDS = 2.0
"""How long after a reading a lazy delete may follow. Delivering again waits longer (fanout.AGAIN_AFTER)."""
MEASURE_EVERY = 8
"""A delivery measures the windows for one item in this many. The slack has room for the others."""
READ_MOST = 32
"""Windows read per script call. Redis is blocked while it runs."""
PIPELINE_LENGTH = 500
"""Deliveries in one chunk of a pipeline. Two chunks are under way at once."""
FIRST_LENGTH = 100
"""Deliveries in the first chunk."""

NO_ERRORS = {bytes, int, type(None)}
"""Types of a delivery's replies."""
OWN_MEMBERS = 3
"""Members of a complete window that are no entries. An inbox may have two more."""

# A Lua function for the server's run. The replication id changes at each restart and failover. A cluster node keeps its
# id, but takes a higher epoch with each slot that moves to it.
RUN = """
    local function run()
        local info = redis.call('INFO', 'replication', 'cluster')
        local id, clustered = string.match(info, 'master_replid:(%w+).*cluster_enabled:(%d)')
        if clustered == '0' then return 'run:' .. id end
        return 'run:' .. id .. '.' .. string.match(redis.call('CLUSTER', 'INFO'), 'cluster_my_epoch:(%d+)')
    end
"""
# ARGV: from (exclusive), TTL in seconds or 0 to keep it, then the number of entries for each of KEYS
READING = (
    RUN
    + """
    local this, time, found = run(), redis.call('TIME'), {}
    local read_at = time[1] * 1000 + math.floor(time[2] / 1000)
    local function read(key, count)
        local own = redis.call('ZMSCORE', key, 'floor', this, 'epoch', 'pushes')
        local floor, epoch = own[1], own[3]
        if not floor or not own[2] then return false end
        if floor == 'inf' then return {floor, epoch, read_at, {}, false} end
        if ARGV[2] ~= '0' then redis.call('EXPIRE', key, ARGV[2]) end
        local entries = redis.call('ZRANGE', key, '(' .. ARGV[1], '(' .. floor, 'BYSCORE', 'REV', 'LIMIT', 0, count)
        return {floor, epoch, read_at, entries, own[4]}
    end
    """
)
READ = register_script(READING + "return read(KEYS[1], ARGV[3])")
READ_TOGETHER = register_script(
    READING
    + """
    for place, key in ipairs(KEYS) do found[place] = read(key, ARGV[place + 2]) end
    return found
    """
)
# ARGV: token, epoch
BEGIN = register_script(
    RUN
    + f"""
    local this = run()
    local epoch = redis.call('ZSCORE', KEYS[1], 'epoch')
    if epoch and tonumber(epoch) == -tonumber(ARGV[2]) and redis.call('ZSCORE', KEYS[1], this) then return 0 end
    redis.call('DEL', KEYS[1])
    redis.call('ZADD', KEYS[1], 'inf', 'floor', 'inf', 'build:' .. ARGV[1], 'inf', this, -tonumber(ARGV[2]), 'epoch')
    redis.call('EXPIRE', KEYS[1], {BUILD_SECONDS})
    return 1
    """
)
# ARGV: token, epoch, floor, TTL in seconds, push generation or 0, then score and member in turn
COMPLETE = register_script(
    RUN
    + """
    local key = KEYS[1]
    if not redis.call('ZSCORE', key, 'build:' .. ARGV[1]) or not redis.call('ZSCORE', key, run()) then return 0 end
    redis.call('ZREM', key, 'build:' .. ARGV[1])
    for first = 6, #ARGV, 1000 do
        redis.call('ZADD', key, unpack(ARGV, first, math.min(first + 999, #ARGV)))
    end
    redis.call('ZREMRANGEBYSCORE', key, 0, ARGV[3])
    redis.call('ZADD', key, ARGV[3], 'floor', -tonumber(ARGV[2]), 'epoch')
    if ARGV[5] ~= '0' then redis.call('ZADD', key, -tonumber(ARGV[5]), 'pushes') end
    redis.call('EXPIRE', key, ARGV[4])
    return 1
    """
)
# ARGV: epoch, deadline in ms of the server's clock, members
FORGET = register_script(
    """
    local time = redis.call('TIME')
    if time[1] * 1000 + time[2] / 1000 > tonumber(ARGV[2]) then return 0 end
    local epoch = redis.call('ZSCORE', KEYS[1], 'epoch')
    if not epoch or tonumber(epoch) ~= -tonumber(ARGV[1]) then return 0 end
    return redis.call('ZREM', KEYS[1], unpack(ARGV, 3))
    """
)
# ARGV: cap. The run's member is the last, above the entries.
SETTLE = register_script(
    """
    local key = KEYS[1]
    local floor = redis.call('ZSCORE', key, 'floor')
    if not floor then return redis.call('DEL', key) end
    if floor == 'inf' then return 0 end
    local first_over = -ARGV[1] - 2
    local last = redis.call('ZRANGE', key, first_over, first_over, 'WITHSCORES')[2]
    if last and tonumber(last) > tonumber(floor) then floor = last end
    local removed = redis.call('ZREMRANGEBYSCORE', key, 0, floor) - 1
    redis.call('ZADD', key, floor, 'floor')
    if removed > 0 then redis.call('ZREM', key, 'deepen') end
    return removed
    """
)
# ARGV: the TTL in seconds
KEEP = register_script(
    """
    local floor = redis.call('ZSCORE', KEYS[1], 'floor')
    return floor and floor ~= 'inf' and redis.call('EXPIRE', KEYS[1], ARGV[1]) or 0
    """
)
# ARGV: floor of the merged entries, then score and member in turn, newest first
MERGE = register_script(
    """
    local key = KEYS[1]
    local floor = redis.call('ZSCORE', key, 'floor')
    if not floor then return 0 end
    if floor == 'inf' and tonumber(ARGV[1]) > 0 then return redis.call('DEL', key) end
    for first = 2, #ARGV, 1000 do
        redis.call('ZADD', key, unpack(ARGV, first, math.min(first + 999, #ARGV)))
    end
    if floor == 'inf' then return 1 end
    if tonumber(ARGV[1]) > tonumber(floor) then floor = ARGV[1] end
    redis.call('ZREMRANGEBYSCORE', key, 0, floor)
    redis.call('ZADD', key, floor, 'floor')
    redis.call('ZREM', key, 'deepen')
    return 1
    """
)


@dataclass(frozen=True, slots=True)
class WindowEntry:
    """An item in a timeline, and its sender."""

    item_id: int
    sender_id: int

    @property
    def member(self) -> str:
        """The ZSET member `sender:item`."""
        return f"{self.sender_id}:{self.item_id}"


@dataclass(frozen=True, slots=True)
class Slice:
    """Entries read from a window, newest first, complete above `bound`: the floor, or just below the last entry.

    `read_at`: the server's clock in ms. Without a built window `bound` is `INFINITY`.
    """

    entries: tuple[int, ...]
    senders: tuple[int, ...]
    bound: int
    floor: int
    epoch: int
    read_at: int
    pushes: int
    """The push generation under which the window takes big-Vs' items. 0: it lacks them."""

    @property
    def is_usable(self) -> bool:
        """Whether the window is built."""
        return self.floor < INFINITY

    def is_built_for(self, epoch: int) -> bool:
        """Whether the window is built, for this epoch."""
        return self.floor < INFINITY and self.epoch == epoch

    @property
    def is_truncated(self) -> bool:
        """Whether the slice was full above the floor."""
        return self.bound > self.floor


NO_SLICE = Slice((), (), INFINITY, INFINITY, 0, 0, 0)


def to_score(reply: bytes) -> int:
    """Parse a score. Infinity becomes `INFINITY`."""
    return INFINITY if reply == b"inf" else int(float(reply))


def to_number(reply: bytes | None) -> int:
    """The number that a negative score stands for. 0 if missing."""
    return -int(float(reply)) if reply else 0


def to_entries(members: Sequence[bytes]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Parse members of a window into item ids and sender ids."""
    numbers = [*map(int, b":".join(members).split(b":"))] if members else []
    return tuple(numbers[1::2]), tuple(numbers[::2])


only_looks: ContextVar[bool] = ContextVar("only_looks", default=False)
"""Whether reading may change nothing in Redis: see `without_renewal`."""


@contextmanager
def without_renewal() -> Iterator[None]:
    """Reading in the block does not renew windows, and begins no tail."""
    token = only_looks.set(True)
    try:
        yield
    finally:
        only_looks.reset(token)


class Window:
    """A window in Redis. Methods named after a command return it for `connections.pipelined`."""

    ttl: ClassVar[int] = int(settings.WINDOW_TTL.total_seconds())
    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key

    def read_command(self, last_id: int, count: int) -> Command:
        """Read `count` entries below `last_id`, and renew the TTL."""
        return ("EVALSHA", READ, 1, self.key, last_id, self._ttl_read(), count)

    @classmethod
    def read_commands(
        cls, client: redis.Redis, keys: Sequence[str], last_id: int, counts: Sequence[int]
    ) -> list[Command]:
        """Commands that do `read_command` for many keys in few scripts, which cost less. A cluster needs one each."""
        length = keys_in_script(client, READ_MOST)
        commands = []
        for first in range(0, len(keys), length):
            some = keys[first : first + length]
            most = counts[first : first + length]
            commands.append(("EVALSHA", READ_TOGETHER, len(some), *some, last_id, cls._ttl_read(), *most))
        return commands

    @classmethod
    def slices(cls, replies: Iterable[list[Any]], counts: Sequence[int]) -> list[Slice]:
        """Parse the replies of `read_commands`."""
        each = chain.from_iterable(replies)
        return [cls.slice(one, count) for one, count in zip(each, counts, strict=True)]

    @classmethod
    def _ttl_read(cls) -> int:
        return 0 if only_looks.get() else cls.ttl

    @staticmethod
    def slice(reply: list[Any] | None, count: int, epoch: int | None = None) -> Slice:
        """Parse the reply of `read_command`. `epoch`: if given, windows of another one count as missing."""
        if reply is None or (epoch is not None and to_number(reply[1]) != epoch):
            return NO_SLICE
        floor = to_score(reply[0])
        ids, senders = to_entries(reply[3])
        return Slice(
            entries=ids,
            senders=senders,
            bound=ids[-1] - 1 if len(ids) == count else floor,
            floor=floor,
            epoch=to_number(reply[1]),
            read_at=int(reply[2]),
            pushes=to_number(reply[4]),
        )

    def begin(self, token: str, epoch: int) -> Command:
        """Put the window under construction. Replies 0 if it is built or being built for this epoch."""
        return ("EVALSHA", BEGIN, 1, self.key, token, epoch)

    def complete(self, token: str, epoch: int, floor: int, entries: Iterable[WindowEntry], pushes: int = 0) -> Command:
        """Finish the build that `token` began. Replies 0 if the token is gone.

        The snapshot's entries are complete above `floor`. `pushes`: the push generation, or 0.
        """
        return ("EVALSHA", COMPLETE, 1, self.key, token, epoch, floor, self.ttl, pushes, *scores_and_members(entries))

    def forget(self, members: Sequence[str], read: Slice) -> Command:
        """Remove members that `read` returned (lazy delete)."""
        deadline = read.read_at + int(FORGET_SECONDS * 1000)
        return ("EVALSHA", FORGET, 1, self.key, read.epoch, deadline, *members)

    def trim(self, cap: int) -> Command:
        """Trim to `cap` and raise the floor. Deletes a key that is no window."""
        return ("EVALSHA", SETTLE, 1, self.key, cap)

    def merge(self, entries: Sequence[WindowEntry], floor: int) -> Command:
        """Add a sender's entries above `floor` (0: all), and raise the window's floor."""
        return ("EVALSHA", MERGE, 1, self.key, floor, *scores_and_members(entries))

    def renew_ttl(self) -> Command:
        """Renew the TTL, unless under construction."""
        return ("EVALSHA", KEEP, 1, self.key, self.ttl)

    def drop(self) -> Command:
        """Delete the window. Always safe: pages use PostgreSQL then."""
        return ("UNLINK", self.key)


def scores_and_members(entries: Iterable[WindowEntry]) -> list[str | int]:
    """Alternating scores and members, for ZADD."""
    return [part for entry in entries for part in (entry.item_id, entry.member)]


def deliver(client: redis.Redis, entry: WindowEntry, windows: Iterable[str], caps: Sequence[int]) -> list[int]:
    """Deliver an entry to many windows. Returns the positions of those that refused it (no window, or below its floor).

    ZSCORE and ZADD work on a cluster and cost half as much as a script. ZCARD for each `MEASURE_EVERY`th item. Windows
    that refused or are too long are settled in one more round trip. Delivering twice, late or out of order changes
    nothing.
    """
    score = b"%d" % entry.item_id
    digits = len(score)
    measured = entry.item_id % MEASURE_EVERY == 0
    each = 3 if measured else 2
    room = settings.WINDOW_SLACK + OWN_MEMBERS
    encode = _deliveries_encoder(entry, measured=measured)
    coming, keys, count = iter(windows), list[str](), len(caps)
    refused: list[int] = []
    unsettled: list[Command] = []
    with borrowed_connection(client) as connection:
        read = replies_of(connection)
        # Two chunks are under way: one is parsed while Redis works on the next. The first is short: Redis waits for it.
        bounds = [0, *range(FIRST_LENGTH, count, PIPELINE_LENGTH), count, count]
        for before, first, end in zip([0, *bounds], bounds, bounds[1:], strict=False):
            if chunk := [*islice(coming, end - first)]:
                keys += chunk
                connection.send_packed_command([encode(chunk)])
            replies = read(each * (first - before))
            if not {*map(type, replies)} <= NO_ERRORS:
                raise next(reply for reply in replies if isinstance(reply, Exception))
            floors = replies[::each]
            # `is_below` inlined, because this runs once per follower.
            late = [
                position
                for position, floor in enumerate(floors, before)
                if floor is None or not (floor < score if len(floor) == digits else is_below(floor, score))
            ]
            lengths = enumerate(replies[2::each] if measured else [], before)
            long = [position for position, length in lengths if length > caps[position] + room]
            refused += late
            unsettled += [
                Window(keys[position]).trim(caps[position])
                for position in dict.fromkeys(late + long)
                if floors[position - before] != b"inf"
            ]
    for first in range(0, len(unsettled), PIPELINE_LENGTH):
        pipelined(client, unsettled[first : first + PIPELINE_LENGTH])
    return refused


def is_below(floor: bytes, score: bytes) -> bool:
    """Whether the floor is below the score. Compares texts, because they usually have equal length."""
    return floor < score if len(floor) == len(score) else to_score(floor) < int(score)


def _deliveries_encoder(entry: WindowEntry, *, measured: bool) -> Callable[[Iterable[str]], bytes]:
    """A function that encodes deliveries to windows as RESP. By hand, because packing costs four times what Redis
    needs.
    """
    score, member = str(entry.item_id), entry.member
    read, add = "*3\r\n$6\r\nZSCORE\r\n", "$5\r\nfloor\r\n*4\r\n$4\r\nZADD\r\n"
    added = f"${len(score)}\r\n{score}\r\n${len(member)}\r\n{member}\r\n"

    def encode(keys: Iterable[str]) -> bytes:
        args = [f"${len(key)}\r\n{key}\r\n" for key in keys]
        if measured:
            commands = [f"{read}{key}{add}{key}{added}*2\r\n$5\r\nZCARD\r\n{key}" for key in args]
        else:
            commands = [f"{read}{key}{add}{key}{added}" for key in args]
        return "".join(commands).encode()

    return encode
