"""The rules that hide a recalled candidate from its reader, or lower its rank.

Left out: the reader's own items, senders with a block or mute, unwanted items, items that the reader liked, replied to,
reposted or viewed, and those issued within a day.

Ranked lower: senders and hashtags of unwanted items, and items viewed some days ago. A view's weight is 1 for a day and
then falls by a bell curve to `DECAY` at `SCALE` later. Up to a weight of a half (five days) the post is left out, later
its score is multiplied by one minus the weight.

One round trip to Redis and one statement.

See docs/decisions.md: Recall adds up small bounded queries.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from accounts.models import User
from discover import recent
from discover.recall import RecalledItem
from discover.recent import View, Views
from relations.rules import READER, blocked_by, blockers_of, muted_by
from storage.connections import fetch, id_array

SURE = timedelta(days=1)
"""The offset of the bell curve: within this a viewed item never comes again."""
SCALE = timedelta(days=4)
DECAY = 0.5
LEFT_OUT = 0.5
"""The weight of a view from which the item is left out."""

SENDER_FACTOR = 0.5
"""The factor for each unwanted item of the same sender."""
TAG_FACTOR = 0.7
"""The factor for each hashtag shared with an unwanted item."""
FLOOR = 0.05
"""The least product of these factors, so that a few clicks do not silence a sender."""
REMEMBERED = 200
"""Newest unwanted items that weaken others, if still published. An unwanted item itself stays out for good."""
ISSUED_WITHIN = timedelta(days=1)

OWN, BLOCKED, MUTED, NOT_INTERESTED = "own", "blocked", "muted", "not_interested"
INTERACTED, VIEWED, REPLY_VIEWED, ISSUED = "interacted", "viewed", "reply_viewed", "issued"
REASONS = (OWN, BLOCKED, MUTED, NOT_INTERESTED, INTERACTED, VIEWED, REPLY_VIEWED, ISSUED)
"""Why a candidate is left out. The first that applies is counted."""

UNWANTED_OF, UNWANTED_TAGS, ROOT = "unwanted_of", "unwanted_tags", "root"

IDS, SENDERS = "(SELECT ids FROM asked)::bigint[]", "(SELECT senders FROM asked)::bigint[]"
# A row: a reason, the item or sender, and how often, or for a viewed reply its id. MATERIALIZED and OFFSET 0 prevent
# two bad plans: looking for every candidate under every unwanted tag, and searching all items of a sender. `asked`
# hides the ids from the planner: weighing 8,000 constants in every branch takes longer than the rest.
ABOUT = f"""
    WITH asked AS MATERIALIZED (
        SELECT %(ids)s::bigint[] AS ids, %(senders)s::bigint[] AS senders
    ), unwanted AS MATERIALIZED (
        SELECT newest.item_id, i.sender_id FROM (
            SELECT item_id FROM discover_notinterested WHERE user_id = %(reader)s ORDER BY id DESC LIMIT {REMEMBERED}
        ) newest CROSS JOIN LATERAL (
            SELECT sender_id FROM items_item WHERE id = newest.item_id AND status = 'published' OFFSET 0
        ) i
    ), unwanted_tags AS MATERIALIZED (
        SELECT t.tag, count(*) AS times FROM unwanted u JOIN items_itemtag t USING (item_id) GROUP BY t.tag
    ), tags AS MATERIALIZED (
        SELECT tag, item_id FROM items_itemtag
        WHERE item_id = ANY({IDS}) AND EXISTS (SELECT FROM unwanted_tags)
    )
    SELECT '{BLOCKED}', b.blocked_id, 1::bigint FROM ({blocked_by(READER)} AND blocked_id = ANY({SENDERS})) b
    UNION ALL
    SELECT '{BLOCKED}', b.blocker_id, 1 FROM ({blockers_of(READER)} AND blocker_id = ANY({SENDERS})) b
    UNION ALL
    SELECT '{MUTED}', m.muted_id, 1 FROM ({muted_by(READER)} AND muted_id = ANY({SENDERS})) m
    UNION ALL
    SELECT '{NOT_INTERESTED}', item_id, 1 FROM discover_notinterested
    WHERE user_id = %(reader)s AND item_id = ANY({IDS})
    UNION ALL
    SELECT '{INTERACTED}', item_id, 1 FROM items_like
    WHERE user_id = %(reader)s AND item_id = ANY({IDS})
    UNION ALL
    SELECT '{INTERACTED}', root_id, 1 FROM items_item
    WHERE sender_id = %(reader)s AND root_id = ANY({IDS}) AND status <> 'deleted'
    UNION ALL
    SELECT '{INTERACTED}', repost_of_id, 1 FROM items_item
    WHERE sender_id = %(reader)s AND repost_of_id = ANY({IDS}) AND status = 'published'
    UNION ALL
    SELECT '{ISSUED}', issued.pk, 1 FROM discover_issuedpage p
    CROSS JOIN unnest(p.item_ids) AS issued (pk) JOIN unnest({IDS}) AS candidate (pk) USING (pk)
    WHERE p.user_id = %(reader)s AND p.issued_at > %(since)s
    UNION ALL
    SELECT '{ROOT}', i.root_id, reply.pk FROM unnest(%(replies)s::bigint[]) AS reply (pk)
    CROSS JOIN LATERAL (SELECT root_id FROM items_item WHERE id = reply.pk OFFSET 0) i WHERE i.root_id IS NOT NULL
    UNION ALL
    SELECT '{UNWANTED_OF}', sender_id, count(*) FROM unwanted GROUP BY sender_id
    UNION ALL
    SELECT '{UNWANTED_TAGS}', t.item_id, sum(u.times)::bigint FROM tags t JOIN unwanted_tags u USING (tag)
    GROUP BY t.item_id
"""


@dataclass(frozen=True, slots=True)
class RemainingCandidates:
    """The candidates left, and how many were left out for each of `REASONS`.

    `views_known` False: viewed items may be among them.
    """

    candidates: list[RecalledItem]
    """Best first by the corrected scores, ties in the order of recall."""
    excluded: Counter[str]
    views_known: bool


def view_weight(age: timedelta) -> float:
    """How much a view counts, 0 to 1."""
    beyond = max(age - SURE, timedelta(0)) / SCALE
    return float(DECAY ** (beyond**2))


def exclude(reader: User, candidates: Sequence[RecalledItem], *, now: datetime) -> RemainingCandidates:
    """Remove candidates that the reader must not get, and lower the scores of others."""
    views = recent.views_of(reader.pk, now=now)
    items, replies = views or Views([], [])
    facts = _load_reasons(reader, candidates, replies, now)
    weights = {view.item_id: view_weight(view.age(now)) for view in items}
    root_of = {reply: root for root, those in facts[ROOT].items() for reply in those}
    thread_weights: dict[int, float] = {}
    for view in reversed(replies):  # the newest view in a thread counts
        if view.item_id in root_of:
            thread_weights[root_of[view.item_id]] = view_weight(view.age(now))

    of_senders: dict[str, Collection[int]] = {OWN: [reader.pk], BLOCKED: facts[BLOCKED], MUTED: facts[MUTED]}
    of_items: dict[str, Collection[int]] = {
        NOT_INTERESTED: facts[NOT_INTERESTED],
        INTERACTED: facts[INTERACTED],
        VIEWED: [item for item, weight in weights.items() if weight >= LEFT_OUT],
        REPLY_VIEWED: [root for root, weight in thread_weights.items() if weight >= LEFT_OUT],
        ISSUED: facts[ISSUED],
    }
    against_sender, against_item = _first_reasons(of_senders), _first_reasons(of_items)
    sender_factors = {pk: max(FLOOR, SENDER_FACTOR ** sum(times)) for pk, times in facts[UNWANTED_OF].items()}
    item_factors = {pk: max(FLOOR, TAG_FACTOR ** sum(times)) for pk, times in facts[UNWANTED_TAGS].items()}
    for item in weights.keys() | thread_weights.keys():
        weight = max(weights.get(item, 0.0), thread_weights.get(item, 0.0))
        item_factors[item] = item_factors.get(item, 1.0) * (1 - weight)

    kept, excluded = [], Counter[str]()
    for candidate in candidates:
        reason = against_sender.get(candidate.sender_id) or against_item.get(candidate.item_id)
        if reason:
            excluded[reason] += 1
            continue
        factor = sender_factors.get(candidate.sender_id, 1.0) * item_factors.get(candidate.item_id, 1.0)
        kept.append(candidate if factor == 1.0 else candidate._replace(score=candidate.score + math.log(factor)))
    kept.sort(key=lambda candidate: -candidate.score)
    return RemainingCandidates(kept, excluded, views is not None)


def _load_reasons(
    reader: User, candidates: Sequence[RecalledItem], replies: Sequence[View], now: datetime
) -> defaultdict[str, dict[int, list[int]]]:
    params = {
        "reader": reader.pk,
        "ids": id_array(candidate.item_id for candidate in candidates),
        "senders": id_array({candidate.sender_id for candidate in candidates}),
        "replies": id_array(view.item_id for view in replies),
        "since": now - ISSUED_WITHIN,
    }
    facts: defaultdict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for what, pk, number in fetch(ABOUT, params) if candidates else ():
        facts[what][pk].append(number)
    return facts


def _first_reasons(ids_by_reason: dict[str, Collection[int]]) -> dict[int, str]:
    return {pk: reason for reason in reversed(REASONS) for pk in ids_by_reason.get(reason, ())}
