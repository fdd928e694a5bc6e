"""The outbox: the items that a big-V published, for readers who pull. Other senders have none.

It begins with the promotion, and lives as long as its big-V publishes or a reader reads it. Its epoch is that of the
promotion (policy.outbox_epoch): nothing is added while the sender is no big-V, so what may be left of an earlier time
as big-V is not used again.
"""

from typing import ClassVar

from accounts.levels import policy
from items.models import Visibility
from items.visibility import in_circle, in_timelines
from storage import construction, keys
from storage.connections import fetch
from storage.construction import BuiltWindow, Snapshot
from storage.window import Entry

EPOCH = f"SELECT {policy.outbox_epoch()} FROM accounts_user u WHERE u.id = %s AND u.is_big_v"  # noqa: S608
# The newest of each visibility, and of those the newest.
PULL = f"""
    SELECT entry.id FROM unnest('{{{",".join(Visibility.values)}}}'::text[]) AS kind (visibility) CROSS JOIN LATERAL (
        SELECT i.id FROM items_item i WHERE i.sender_id = %(sender)s AND {in_circle("i", "kind.visibility")}
            AND {in_timelines("i")}
        ORDER BY i.id DESC LIMIT %(count)s
    ) entry ORDER BY entry.id DESC LIMIT %(count)s
"""  # noqa: S608 (constants)


class Outbox(BuiltWindow):
    """Every published post and repost of a big-V, of every visibility: the reader's query decides about that."""

    builder: ClassVar[str] = "timeline.materialise_outbox"
    __slots__ = ()

    def __init__(self, user_id: int) -> None:
        super().__init__(user_id, keys.outbox(user_id))


def pull(user_id: int, count: int) -> tuple[list[Entry], int]:
    """The newest `count` entries of a sender from PostgreSQL, and the floor above which they are complete."""
    ids = [row[0] for row in fetch(PULL, {"sender": user_id, "count": count + 1})]
    floor = ids[count] if len(ids) > count else 0
    return [Entry(item_id, user_id) for item_id in ids[:count]], floor


def epoch_of(user_id: int) -> int | None:
    """The epoch that the sender's outbox must have been built for; None where none is to be used."""
    rows = fetch(EPOCH, [user_id])
    return rows[0][0] if rows else None


def begin(user_id: int) -> bool:
    """Begin the outbox of a big-V who has none; True if workers have been asked to fill it. Where Redis does not
    answer, the next publication begins it, as the next reader does.
    """
    epoch = epoch_of(user_id)
    return epoch is not None and construction.begin(Outbox(user_id), epoch)


def materialise(user_id: int, token: str, cap: int) -> bool:
    """Fill the outbox whose construction `token` began; True if it is in use now."""
    outbox = Outbox(user_id)
    if not construction.is_under_way(outbox, token):
        return False
    epoch = epoch_of(user_id)
    if epoch is None:
        return False
    # Items that are published from now on find the promotion, and are delivered.
    entries, floor = pull(user_id, cap)
    return construction.finish(outbox, token, Snapshot(epoch, floor, entries, cap))
