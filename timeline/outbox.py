"""The outbox: what a sender published, for readers who pull."""

from typing import ClassVar

from accounts import policy
from feedsite import keys
from feedsite.connections import feeds_for_tasks, fetch, pipelined
from feedsite.window import Entry, Window, is_under_construction
from items.models import Visibility

GENERATION = f"SELECT {policy.GENERATION}"
# The newest of each visibility, and of those the newest.
PULL = f"""
    SELECT entry.id FROM unnest('{{{",".join(Visibility.values)}}}'::text[]) AS kind (visibility) CROSS JOIN LATERAL (
        SELECT i.id FROM items_item i WHERE i.sender_id = %(sender)s AND i.visibility = kind.visibility
            AND i.status = 'published' AND i.reply_to_id IS NULL
        ORDER BY i.id DESC LIMIT %(count)s
    ) entry ORDER BY entry.id DESC LIMIT %(count)s
"""  # noqa: S608 (constants)


class Outbox(Window):
    """Every published post and repost of a sender, whoever may see it: the reader's query decides that.

    Its epoch is the policy's generation: nothing but a delivery ever adds to what a sender published, unless PostgreSQL
    failed over to another history.
    """

    builder: ClassVar[str] = "timeline.materialise_outbox"
    __slots__ = ("user_id",)

    def __init__(self, user_id: int) -> None:
        super().__init__(keys.outbox(user_id))
        self.user_id = user_id


def pull(user_id: int, count: int) -> tuple[list[Entry], int]:
    """The newest `count` entries of a sender from PostgreSQL, and the floor above which they are complete."""
    ids = [row[0] for row in fetch(PULL, {"sender": user_id, "count": count + 1})]
    floor = ids[count] if len(ids) > count else 0
    return [Entry(item_id, user_id) for item_id in ids[:count]], floor


def materialise(user_id: int, token: str, cap: int) -> bool:
    """Fill the outbox whose construction `token` began; True if it is in use now."""
    outbox = Outbox(user_id)
    if not is_under_construction(outbox, token):
        return False
    # Read before the pull: what is pulled under an older generation is used by no reader.
    generation = fetch(GENERATION)[0][0]
    if generation is None:
        return False
    entries, floor = pull(user_id, cap)
    commands = [outbox.complete(token, generation, floor, entries), outbox.settle(cap)]
    return bool(pipelined(feeds_for_tasks(), commands)[0])
