"""The outbox: a window of a big-V's items, or of the public posts with a followed hashtag, for readers who pull.

Its *source* is the id of a big-V, or minus the id of a hashtag.

A big-V's outbox lives while it is written or read. Its epoch is the promotion's, so leftovers are not used.

A hashtag's outbox lives while it is read. Its epoch is in the hashtag's row, written by the first follow. A fan-out
that does not see the row has an older item, which every builder's snapshot holds.

See docs/decisions.md: A followed hashtag is an outbox.
"""

from django.conf import settings

from accounts.levels import policy
from items.models import LISTED
from items.visibility import in_circle, in_timelines
from relations.rules import known_tags
from storage import construction, keys
from storage.connections import fetch
from storage.construction import BuiltWindow, WindowSnapshot
from storage.queue import task
from storage.window import WindowEntry

EPOCH = f"SELECT {policy.outbox_epoch()} FROM accounts_user u WHERE u.id = %s AND u.is_big_v"
TAG_EPOCH = known_tags(f"g.epoch # {policy.GENERATION}", "g.id = %s")
# The newest of each visibility, then the newest of all.
PULL = f"""
    SELECT entry.id, %(sender)s::bigint FROM unnest('{{{",".join(LISTED)}}}'::text[]) AS kind (visibility)
    CROSS JOIN LATERAL (
        SELECT i.id FROM items_item i WHERE i.sender_id = %(sender)s AND {in_circle("i", "kind.visibility")}
            AND {in_timelines("i")}
        ORDER BY i.id DESC LIMIT %(count)s
    ) entry ORDER BY entry.id DESC LIMIT %(count)s
"""
TAG_PULL = f"""
    SELECT i.id, i.sender_id FROM ({known_tags("g.name", "g.id = %(tag)s")}) g CROSS JOIN LATERAL (
        SELECT t.item_id FROM items_itemtag t WHERE t.tag = g.name AND t.is_public_post
        ORDER BY t.item_id DESC LIMIT %(count)s
    ) post JOIN items_item i ON i.id = post.item_id ORDER BY i.id DESC
"""


def source_of(*, tag: int) -> int:
    """The source of a hashtag's outbox."""
    return -tag


def outbox_key(source: int) -> str:
    """The key of a source's outbox."""
    return keys.outbox(source) if source > 0 else keys.tag_outbox(-source)


class Outbox(BuiltWindow):
    """A window of a big-V's posts and reposts except private mentions, or of public posts with a hashtag."""

    __slots__ = ()

    def __init__(self, source: int) -> None:
        super().__init__(source, outbox_key(source))

    def build_later(self, token: str) -> bool:
        """Have a worker build it."""
        return bool(materialise.delay(self.owner, token))


def pull(source: int, count: int) -> tuple[list[WindowEntry], int]:
    """Read the newest `count` entries of a source from PostgreSQL, and the floor."""
    query, name = (PULL, "sender") if source > 0 else (TAG_PULL, "tag")
    entries = fetch(query, {name: abs(source), "count": count + 1}, into=lambda row: WindowEntry(*row))
    floor = entries[count].item_id if len(entries) > count else 0
    return entries[:count], floor


def epoch_of(source: int) -> int | None:
    """The epoch that the outbox must have. None: unusable."""
    rows = fetch(EPOCH if source > 0 else TAG_EPOCH, [abs(source)])
    return rows[0][0] if rows else None


def begin(user_id: int) -> bool:
    """Begin a big-V's missing outbox. True if a task is enqueued."""
    epoch = epoch_of(user_id)
    return epoch is not None and construction.begin(Outbox(user_id), epoch)


@task("timeline.materialise_outbox")
def materialise(source: int, token: str) -> bool:
    """Fill the outbox that `token` began. True if it is in use."""
    cap = settings.OUTBOX_CAP
    outbox = Outbox(source)
    if not construction.is_under_way(outbox, token):
        return False
    epoch = epoch_of(source)
    if epoch is None:
        return False
    # From now on fan-outs see the promotion or the hashtag's row.
    entries, floor = pull(source, cap)
    return construction.finish(outbox, token, WindowSnapshot(epoch, floor, entries, cap))
