"""The inbox: the newest items that a reader follows, pushed by fan-out; and its tail, pulled while scrolling below
its floor.
"""

from collections.abc import Iterable
from typing import ClassVar

from django.conf import settings

from accounts import policy
from feedsite import keys
from feedsite.connections import Command, feeds_for_tasks, fetch, pipelined, script
from feedsite.window import BUILD_SECONDS, RUN, Entry, Window, is_under_construction, scored
from timeline import active_fans
from timeline.pull import pull_entries

EPOCH_TRIES = 3
READER = f"SELECT u.level, {policy.EPOCH}, {policy.PUSH_LEVEL} FROM accounts_user u WHERE u.id = %s"  # noqa: S608

# KEYS[1]; ARGV: from (exclusive), count, epoch, token, seconds to build. An unusable tail is put under construction
# at once.
READ_TAIL = script(
    RUN
    + """
    local key = KEYS[1]
    local floor = redis.call('ZSCORE', key, 'floor')
    local top = redis.call('ZSCORE', key, 'top')
    local epoch = redis.call('ZSCORE', key, 'epoch')
    if floor and top and redis.call('ZSCORE', key, run()) and tonumber(epoch) == -tonumber(ARGV[3])
            and tonumber(ARGV[1]) <= tonumber(top) and tonumber(ARGV[1]) > tonumber(floor) then
        local entries = redis.call('ZRANGE', key, '(' .. ARGV[1], '(' .. floor, 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[2])
        if #entries == tonumber(ARGV[2]) or tonumber(floor) == 0 then return {floor, entries} end
    end
    redis.call('DEL', key)
    redis.call('ZADD', key, 'inf', 'build:' .. ARGV[4], 'inf', run())
    redis.call('EXPIRE', key, ARGV[5])
    return false
    """
)
# ARGV: token, epoch, floor, top, seconds to live, then score and member by turns
COMPLETE_TAIL = script(
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


class Inbox(Window):
    """The window that a reader's home is read from. Its epoch is policy.EPOCH: of the reader and of the policy."""

    builder: ClassVar[str] = "timeline.materialise_inbox"
    __slots__ = ("user_id",)

    def __init__(self, user_id: int) -> None:
        super().__init__(keys.inbox(user_id))
        self.user_id = user_id


class Tail:
    """The last hundred entries that a reader pulled below the inbox's floor: complete above `floor` and below `top`.

    It never lacks what was delivered after its snapshot:
    - It begins at or below the inbox's floor. A delivery at or below the floor is refused by the inbox, and one that is
      refused drops the tail. The floor only rises, until the inbox is built anew, and `materialise` drops the tail
      before the new inbox is in use.
    - It is written only where the mark that its reading left still stands. The mark is set before the inbox is read,
      and an inbox that cannot be used has no tail: so no inbox with a lower floor is built between the two unnoticed.
    """

    LENGTH: ClassVar[int] = 100
    TTL: ClassVar[int] = 300
    __slots__ = ("key",)

    def __init__(self, user_id: int) -> None:
        self.key = keys.tail(user_id)

    def reading(self, last_id: int, count: int, epoch: int, token: str) -> Command:
        """Read `count` entries below `last_id`; where the tail does not reach, mark that `token` is about to pull
        it.
        """
        return ("EVALSHA", READ_TAIL, 1, self.key, last_id, count, epoch, token, BUILD_SECONDS)

    @staticmethod
    def slice(reply: list[bytes] | None, count: int) -> tuple[list[int], int] | None:
        """What `reading` replied: ids newest first, and the bound above which they are complete."""
        if reply is None:
            return None
        ids = [int(member.split(b":")[1]) for member in reply[1]]  # type: ignore[attr-defined]
        return ids, ids[-1] - 1 if len(ids) == count else int(float(reply[0]))

    def complete(self, token: str, epoch: int, floor: int, top: int, entries: Iterable[Entry]) -> Command:
        """Write what was pulled below `top`, if nothing was delivered there since `reading` marked it."""
        below = (entry for entry in entries if entry.item_id < top)
        return ("EVALSHA", COMPLETE_TAIL, 1, self.key, token, epoch, floor, top, self.TTL, *scored(below))

    def drop(self) -> Command:
        return ("UNLINK", self.key)


def cap_of(level: int) -> int:
    """How many entries the inbox of a level holds; 0 for dormant readers, who have none."""
    return int(settings.LEVEL_CAPS.get(level, 0))


def materialise(user_id: int, token: str) -> bool:
    """Fill the inbox whose construction `token` began; True if it is in use now.

    The reader is made known to the big-Vs that push to them before the snapshot; a follow or a new policy in between
    changes the epoch, and the whole is done again. A construction that is over is not worth the pull: of those that
    wait for a busy worker, readers may begin many anew.
    """
    if not is_under_construction(Inbox(user_id), token):
        return False
    for _ in range(EPOCH_TRIES):
        level, epoch, push_level = fetch(READER, [user_id])[0]
        if not cap_of(level) or epoch is None:
            return False
        if level >= push_level:
            active_fans.add(user_id)
        snapshot_epoch, entries, floor = pull_entries(user_id, cap_of(level))
        if snapshot_epoch != epoch:
            continue
        inbox, cap = Inbox(user_id), cap_of(level)
        # Before the inbox is in use: on a cluster, what is sent together is not done in this order.
        pipelined(feeds_for_tasks(), [Tail(user_id).drop()])
        # What was delivered during the construction comes on top of the snapshot.
        commands = [inbox.complete(token, epoch, floor, entries), inbox.settle(cap)]
        return bool(pipelined(feeds_for_tasks(), commands)[0])
    return False
