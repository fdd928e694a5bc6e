"""Replays from PostgreSQL, for new windows and for what no window has."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from accounts.levels.policy import EPOCH
from live.hydrate import COLUMNS, SessionRow
from live.visibility import join_active_host, unhidden
from relations.rules import READER, followees, is_wanted
from storage.connections import fetch
from storage.window import INFINITY, WindowEntry

# Hosts in the reader's feed. The verifying query leaves out suspended hosts, so that windows need not change. Only of
# hosts it is asked whether they are wanted. OFFSET 0 forces an index probe per followee instead of a hash of all hosts.
HOSTS = f"""
    SELECT host.user_id AS id, host.version, host.scheduled FROM ({followees(READER)}) f CROSS JOIN LATERAL (
        SELECT h.user_id, h.version, h.scheduled FROM live_host h WHERE h.user_id = f.followee_id OFFSET 0
    ) host
    WHERE {is_wanted(READER, "host.user_id")}
"""


def newest_replays(hosts: str, condition: str) -> str:
    """WITH expressions ending in `pulled`: the newest `count` replays of `hosts` (a query of `id`). `condition` on `l`
    must be an index's, except for rare parts.
    """
    return f"""
    heads AS MATERIALIZED (
        SELECT h.id, head.position AS head FROM ({hosts}) h CROSS JOIN LATERAL (
            SELECT l.position FROM live_livesession l
            WHERE l.host_id = h.id AND l.state = 'replay' AND l.position < %(below)s AND {condition}
            ORDER BY l.position DESC LIMIT 1
        ) head
    ),
    cut AS MATERIALIZED (
        SELECT coalesce((SELECT head FROM heads ORDER BY head DESC OFFSET %(count)s - 1 LIMIT 1), 0) AS position
    ),
    pulled AS MATERIALIZED (
        SELECT replay.id, replay.position, replay.host_id FROM heads h CROSS JOIN LATERAL (
            SELECT l.id, l.position, l.host_id FROM live_livesession l
            WHERE l.host_id = h.id AND l.state = 'replay' AND l.position < %(below)s
                AND l.position >= (SELECT position FROM cut) AND {condition}
            ORDER BY l.position DESC LIMIT %(count)s
        ) replay
        WHERE h.head >= (SELECT position FROM cut)
        ORDER BY replay.position DESC LIMIT %(count)s
    )
    """


ACTIVE = f"SELECT host.id FROM ({HOSTS}) host {join_active_host('host.id')}"

# Windows include hidden replays, so that showing one again needs no delivery.
ENTRIES = f"""
    WITH {newest_replays(HOSTS, "NOT l.pulled")}
    SELECT {EPOCH}, pulled.position, pulled.host_id
    FROM accounts_user u LEFT JOIN pulled ON true WHERE u.id = %(reader)s ORDER BY pulled.position DESC
"""
BODIES = f"""
    WITH {newest_replays(ACTIVE, f"{unhidden('l')} AND l.id <> ALL(%(held)s::bigint[])")}
    SELECT pulled.position, {COLUMNS} FROM pulled
    CROSS JOIN LATERAL (SELECT * FROM live_livesession s WHERE s.id = pulled.id OFFSET 0) l
    CROSS JOIN LATERAL (SELECT * FROM accounts_user u WHERE u.id = l.host_id OFFSET 0) h
    ORDER BY pulled.position DESC
"""


class PulledReplay(NamedTuple):
    """A row of `BODIES`: a replay and its position."""

    position: int
    session: SessionRow

    @classmethod
    def of(cls, row: Sequence[Any]) -> "PulledReplay":
        position, *columns = row
        return cls(position, SessionRow._make(columns))


def pull_entries(reader_id: int, count: int) -> tuple[int | None, list[WindowEntry], int]:
    """A reader's window: (policy.EPOCH, entries, floor), from one snapshot."""
    rows = fetch(ENTRIES, {"reader": reader_id, "below": INFINITY, "count": count + 1})
    epoch, _position, _host_id = rows[0]
    entries = [WindowEntry(position, host_id) for _, position, host_id in rows if position is not None]
    floor = entries[count].item_id if len(entries) > count else 0
    return epoch, entries[:count], floor


def pull_bodies(reader_id: int, *, below: int, count: int, held: str) -> list[PulledReplay]:
    """Visible replays, newest first, without sessions in `held`."""
    return fetch(BODIES, {"reader": reader_id, "below": below, "count": count, "held": held}, into=PulledReplay.of)
