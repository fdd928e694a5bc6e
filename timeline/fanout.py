"""Fan-out: writes a published item into the windows of its sender's followers.

The delivery table is the queue (storage.deliveries). A row goes when all windows have the item.

See docs/decisions.md: Experiments that were not worth it.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from accounts.levels import policy
from accounts.models import Level
from items import new_rows
from items.models import Item, Status, Visibility
from items.visibility import for_others, in_timelines, is_listed
from relations import rules
from relations.followers import FIRST_PART, PART, FollowerPart, follower_part_query, follower_parts
from runtime import metrics
from storage import keys
from storage.connections import (
    LAZILY,
    feeds_for_tasks,
    fetch,
    pipelined,
)
from storage.deliveries import Attempt
from storage.ids import NO_BOUND
from storage.queue import task
from storage.window import PIPELINE_LENGTH, WindowEntry, deliver
from timeline import active_fans, outbox
from timeline.inbox import Tail, cap_of
from timeline.models import Delivery, DeliveryRange

AGAIN_AFTER = timedelta(seconds=5)
"""How long an item that is published again waits. Longer than a lazy delete of it may take (window.FORGET_SECONDS)."""
INSERT = f"""
    INSERT INTO timeline_delivery (item_id, sender_id, attempts, enqueued, sweep_at, last_error)
    SELECT id, sender_id, 0, 0, now() + %(delivery_retry)s, '' FROM new
    WHERE {in_timelines("new")} AND {is_listed("new")}
"""
AGAIN = """
    INSERT INTO timeline_delivery (item_id, sender_id, attempts, enqueued, not_before, sweep_at, last_error)
    VALUES (%(item)s, %(sender)s, 0, 0, now() + %(wait)s, now() + %(wait)s, '')
    ON CONFLICT (item_id) DO UPDATE SET revision = DEFAULT, attempts = 0, enqueued = 0,
        not_before = now() + %(wait)s, sweep_at = now() + %(wait)s, parked_at = NULL, last_error = ''
    RETURNING item_id
"""
# Big-V items go to readers at the push level, unless a demotion fills all inboxes. The first followers come with the
# claim, including the sender. It may wait for a transaction that publishes the item again, so it takes only the
# revision of its snapshot.
FEW = f"(NOT s.is_big_v AND s.follower_count <= %(few)s AND i.status = 'published' AND {for_others('i')})"
FIRST = follower_part_query(
    "s.id",
    after="0",
    last=str(NO_BOUND),
    size=str(FIRST_PART),
    where=policy.has_inbox(),
    besides="s.id",
    provided=FEW,
)
TAGS = "SELECT t.tag FROM items_itemtag t WHERE t.item_id = d.item_id AND t.is_public_post"
CLAIM = f"""
    UPDATE timeline_delivery d SET attempts = d.attempts + 1,
        sweep_at = now() + %(retry)s::interval * 2 ^ least(d.attempts, 10)
    FROM items_item i, accounts_user s CROSS JOIN LATERAL ({FIRST}) first
    WHERE d.item_id = %(item)s AND d.parked_at IS NULL AND d.not_before <= now() AND (SELECT {LAZILY})
        AND i.id = d.item_id AND s.id = d.sender_id
        AND d.revision = (SELECT revision FROM timeline_delivery WHERE item_id = %(item)s)
    RETURNING d.sender_id, d.revision, d.attempts, i.status, i.visibility, s.is_big_v,
        s.is_big_v AND NOT EXISTS (
            SELECT FROM timeline_backfill b
            WHERE b.sender_id = s.id AND b.finished_at IS NULL AND b.cancelled_at IS NULL),
        {policy.PUSH_LEVEL}, {policy.GENERATION},
        CASE WHEN {policy.has_inbox("s")} THEN s.level ELSE 0 END, s.follower_count,
        ARRAY(SELECT r.id FROM timeline_deliveryrange r WHERE r.delivery_id = d.item_id AND r.revision = d.revision),
        ARRAY({rules.known_tags("g.id", f"g.name IN ({TAGS})")}),
        {FEW}, first.seen, first.last, first.ids, first.levels
"""
# Deletes ranges of older revisions too.
FINISH = f"""
    WITH done AS (
        DELETE FROM timeline_delivery WHERE item_id = %(item)s AND revision = %(revision)s AND (SELECT {LAZILY})
        RETURNING item_id, not_before),
    ranges AS (DELETE FROM timeline_deliveryrange WHERE delivery_id IN (SELECT item_id FROM done))
    SELECT extract(epoch FROM clock_timestamp() - not_before)::float8 FROM done
"""
# The last follower of every full range.
BOUNDARIES = f"""
    SELECT follower_id FROM (
        {rules.followers("%s", "follower_id, row_number() OVER (ORDER BY follower_id) AS place")}
    ) numbered WHERE place %% %s = 0 ORDER BY follower_id
"""


class FanOutWork(NamedTuple):
    """What one attempt delivers and to whom: columns of `CLAIM`."""

    item_id: int
    sender_id: int
    revision: int
    attempts: int
    status: str
    visibility: str
    is_big_v: bool
    selective: bool
    """Only followers at `push_level` or above receive it: the sender is a big-V, and no demotion is running."""
    push_level: int
    generation: int | None
    """The policy's generation; None if no window may be used."""

    @property
    def entry(self) -> WindowEntry:
        """The item as an entry of a window."""
        return WindowEntry(self.item_id, self.sender_id)

    @property
    def to_followers(self) -> bool:
        """Whether followers receive the item."""
        return self.status == Status.PUBLISHED and self.visibility != Visibility.SELF

    @property
    def minimum_level(self) -> int:
        """The lowest level that receives the item."""
        return self.push_level if self.selective else 1

    def attempt(self, *, is_counted: bool = True) -> Attempt:
        """An attempt that records errors in the delivery's row. `is_counted`: False for a range."""
        return Attempt(
            f"item {self.item_id}",
            lambda: Delivery.objects.filter(pk=self.item_id, revision=self.revision),
            self.attempts,
            is_counted,
        )


class Claim(NamedTuple):
    """A claimed delivery: the work, and other columns of `CLAIM`."""

    work: FanOutWork
    level: int
    """The sender's level; 0 if the policy gives them no inbox."""
    followers: int
    """The sender's follower count, which may lag. It only decides whether to split the work."""
    ranges: Sequence[int]
    """The unfinished ranges of an earlier attempt."""
    tags: Sequence[int]
    """The hashtags of a public post that have an outbox (relations.models.Tag)."""
    first: FollowerPart | None
    """The first followers and the sender, if the sender has few followers."""


# --- Publishing ------------------------------------------------------------------------------------------
new_rows.ROWS["delivery"] = new_rows.RowOfNewItem(INSERT, lambda: {"delivery_retry": settings.FAN_OUT_RETRY_AFTER})


def deliver_again(item: Item) -> None:
    """Write the delivery row of an item that is published again. It waits `AGAIN_AFTER` for the sweeper."""
    fetch(AGAIN, {"item": item.pk, "sender": item.sender_id, "wait": AGAIN_AFTER})


# --- Fan-out ---------------------------------------------------------------------------------------------
@task("timeline.fan_out")
def fan_out(item_id: int) -> bool:
    """Deliver an item, or split the work. True if all windows have it."""
    claim = _claim(item_id)
    if claim is None:
        return False
    attempt = claim.work.attempt()
    if claim.work.attempts > settings.FAN_OUT_ATTEMPTS:
        attempt.park()
        return False
    return attempt.run(lambda: _fan_out(claim))


def _claim(item_id: int) -> Claim | None:
    params = {"item": item_id, "retry": settings.FAN_OUT_RETRY_AFTER, "few": _small_follower_count()}
    rows = fetch(CLAIM, params)
    if not rows:
        return None
    *work, level, followers, ranges, tags, has_first, seen, last, ids, levels = rows[0]
    first = FollowerPart(seen, last, ids, levels) if has_first else None
    return Claim(FanOutWork(item_id, *work), level, followers, ranges, tags, first)


def _small_follower_count() -> int:
    """The follower count up to which one attempt delivers to all. Half a range, because the count may lag."""
    few: int = settings.FAN_OUT_RANGE // 2
    return few


def _fan_out(claim: Claim) -> bool:
    if claim.work.status == Status.PUBLISHED:
        _deliver_to_self(claim)
        _deliver_to_tags(claim)
    if claim.work.to_followers and not _to_followers(claim):
        return False
    _finish(claim.work)
    return True


def _deliver_to_self(claim: Claim) -> None:
    """Write the item into its sender's inbox and, if they are a big-V, into their outbox.

    Publishing keeps the outbox alive.
    """
    work = claim.work
    if claim.level and claim.first is None:
        _deliver_to(work.entry, [work.sender_id], [cap_of(claim.level)])
    if work.is_big_v:
        client, window = feeds_for_tasks(), outbox.Outbox(work.sender_id)
        refused = deliver(client, work.entry, [window.key], [settings.OUTBOX_CAP])
        pipelined(client, [window.renew_ttl()])
        if refused:  # it may have been lost
            outbox.begin(work.sender_id)


def _deliver_to_tags(claim: Claim) -> None:
    """Write the item into the outboxes of its hashtags. Only readers create these and keep them alive."""
    windows = [outbox.Outbox(outbox.source_of(tag=tag)).key for tag in claim.tags]
    if windows:
        deliver(feeds_for_tasks(), claim.work.entry, windows, [settings.OUTBOX_CAP] * len(windows))


def _to_followers(claim: Claim) -> bool:
    """Write the item into its followers' inboxes. False if ranges are left to tasks."""
    work = claim.work
    if claim.ranges:  # their tasks may have been lost
        _enqueue_ranges(claim.ranges)
        return False
    if work.selective:
        sizes = active_fans.sizes(work.sender_id, work.generation)
        # A hundredth of the cost of reading a million followers.
        if sizes is None and active_fans.build(work.sender_id):
            sizes = active_fans.sizes(work.sender_id, work.generation)
        if sizes is not None:
            if sum(sizes) > settings.FAN_OUT_RANGE:
                parts = [(shard, 0, 0) for shard in range(len(sizes))]
                return _create_ranges(work, parts)
            fans = active_fans.members(work.sender_id, list(range(len(sizes))), work.generation)
            if fans is not None:
                _deliver_to_fans(work, fans)
                return True
        active_fans.build.delay(work.sender_id)
    highs = []
    if claim.followers > _small_follower_count():
        highs = [row[0] for row in fetch(BOUNDARIES, [work.sender_id, settings.FAN_OUT_RANGE])]
    if highs:
        lows = [0, *highs]
        return _create_ranges(work, [(None, low, high) for low, high in zip(lows, [*highs, NO_BOUND], strict=True)])
    _deliver_to_range(work, 0, NO_BOUND, claim.first)
    return True


def _create_ranges(work: FanOutWork, parts: Iterable[tuple[int | None, int, int]]) -> bool:
    with transaction.atomic():
        # A second attempt waits here, then finds the ranges of the first.
        if not Delivery.objects.select_for_update().filter(pk=work.item_id, revision=work.revision).exists():
            return False
        rows = DeliveryRange.objects.filter(delivery_id=work.item_id, revision=work.revision)
        if not rows.exists():
            DeliveryRange.objects.filter(delivery_id=work.item_id).delete()
            DeliveryRange.objects.bulk_create(
                DeliveryRange(
                    delivery_id=work.item_id,
                    revision=work.revision,
                    selective=work.selective,
                    shard=shard,
                    low=low,
                    high=high,
                )
                for shard, low, high in parts
            )
        pks = list(rows.values_list("pk", flat=True))
    _enqueue_ranges(pks)
    return False


def _enqueue_ranges(pks: Iterable[int]) -> None:
    for pk in pks:
        fan_out_range.delay(pk)


@task("timeline.fan_out_range")
def fan_out_range(range_id: int) -> bool:
    """Deliver one range. True if done. The last range completes the delivery.

    The policy may have changed since the claim, without harm.
    """
    part = DeliveryRange.objects.select_related("delivery__item", "delivery__sender").filter(pk=range_id).first()
    if part is None:
        return False
    delivery, current = part.delivery, policy.current()
    work = FanOutWork(
        delivery.pk,
        delivery.sender_id,
        part.revision,
        delivery.attempts,
        delivery.item.status,
        delivery.item.visibility,
        is_big_v=delivery.sender.is_big_v,
        selective=part.selective,
        push_level=current.push_level,
        generation=current.generation,
    )
    if not work.attempt(is_counted=False).run(lambda: _deliver_part(work, part)):
        return False
    with transaction.atomic():
        locked = Delivery.objects.select_for_update().filter(pk=delivery.pk, revision=work.revision)
        locked.update(sweep_at=Now() + settings.FAN_OUT_RETRY_AFTER)
        part.delete()
        if not DeliveryRange.objects.filter(delivery_id=delivery.pk, revision=work.revision).exists():
            _finish(work)
    return True


def _deliver_part(work: FanOutWork, part: DeliveryRange) -> bool:
    if not work.to_followers:
        return True
    if part.shard is None:
        _deliver_to_range(work, part.low, part.high)
        return True
    fans = active_fans.members(work.sender_id, [part.shard], work.generation)
    if fans is None:  # the shard was lost since the work was split
        fans = active_fans.fans_by_shard(work.sender_id, work.push_level).get(part.shard, [])
    _deliver_to_fans(work, fans)
    return True


def _deliver_to_range(work: FanOutWork, low: int, high: int, first: FollowerPart | None = None) -> None:
    sender_id, minimum = work.sender_id, work.minimum_level
    caps = {level: cap_of(level) for level in Level.values}
    for ids, levels in follower_parts(sender_id, low, high, minimum, with_inbox=True, first=first):
        _deliver_to(work.entry, ids, [caps[level] for level in levels])


def _deliver_to_fans(work: FanOutWork, fans: Sequence[int]) -> None:
    cap = cap_of(max(settings.LEVEL_CAPS))
    for first in range(0, len(fans), PART):
        part = fans[first : first + PART]
        _deliver_to(work.entry, part, [cap] * len(part))


def _deliver_to(entry: WindowEntry, follower_ids: Sequence[int], caps: Sequence[int]) -> None:
    refused = deliver(feeds_for_tasks(), entry, map(keys.inbox, follower_ids), caps)
    metrics.fanout_entries.inc(len(follower_ids) - follower_ids.count(entry.sender_id))  # without the sender's own
    for first in range(0, len(refused), PIPELINE_LENGTH):
        part = refused[first : first + PIPELINE_LENGTH]
        pipelined(feeds_for_tasks(), [Tail(follower_ids[position]).drop() for position in part])


def _finish(work: FanOutWork) -> None:
    for (seconds,) in fetch(FINISH, {"item": work.item_id, "revision": work.revision}):
        metrics.delivery_seconds.observe(seconds)
