"""Measures the played history: who waits, and the filters. A server that does not answer is a metric, no error.

Makes up to 7 round trips to Redis. 30,000 counts for 5,000 shards take 0.15 s. A user may be counted on several nodes.
"""

from datetime import datetime
from enum import StrEnum

from django.conf import settings

from runtime import metrics
from seen.filter_store import KEPT_MONTHS, StoreUnavailableError, month_of
from seen.played import PlayedUnavailableError, client, errors
from seen.ring import NODES, node_of
from seen.store import store
from storage import keys
from storage.connections import pipelined

AT_ONCE = 5_000
"""Counts per round trip."""


class NodeState(StrEnum):
    """The states of a node of the ring."""

    CURRENT = "current"
    """This hour's plays are marked here."""
    MERGING = "merging"
    """The last hour's node, which this hour's tasks merge."""
    LEFT = "left"
    """No task works here. Remaining users were missed twice, and wait one lap."""


def measure(*, now: datetime) -> None:
    """Set the metrics of the played history."""
    try:
        for state, users in waiting_users(now=now).items():
            metrics.played_backlog.labels(state).set(users)
        metrics.played_up.labels("plays").set(True)
    except PlayedUnavailableError:
        metrics.played_up.labels("plays").set(False)
    try:
        stats, this_month = store().stats(), month_of(now)
        for age in range(KEPT_MONTHS + 1):
            month = stats.get(this_month - age)
            metrics.played_filters.labels(age).set(month.filters if month else 0)
            metrics.played_filter_bytes.labels(age).set(month.size if month else 0)
        metrics.played_up.labels("store").set(True)
    except StoreUnavailableError:
        metrics.played_up.labels("store").set(False)


def waiting_users(*, now: datetime) -> dict[NodeState, int]:
    """The users whose plays wait on the ring, by state of their node. Raises PlayedUnavailableError."""
    found = dict.fromkeys(NodeState, 0)
    with errors():
        sets = [[keys.played_users(node, shard) for shard in range(settings.PLAYED_SHARDS)] for node in range(NODES)]
        # If nobody played, EXISTS costs a sixth of counting.
        used = pipelined(client(), [("EXISTS", *each) for each in sets])
        for node, each in enumerate(sets):
            hours = (node_of(now) - node) % NODES
            state = (NodeState.CURRENT, NodeState.MERGING)[hours] if hours < 2 else NodeState.LEFT
            for first in range(0, len(each) if used[node] else 0, AT_ONCE):
                found[state] += sum(pipelined(client(), [("SCARD", key) for key in each[first : first + AT_ONCE]]))
    return found
