"""Who may see a live session, as SQL for all queries. `%(reader)s` is the reader's id, or 0. Queries for windows and
lineups check less.

See docs/decisions.md: Who may see what is SQL text in one place.
"""

from relations.rules import READER, follows, is_wanted, unblocked


def hidden(session: str) -> str:
    """Whether only the host sees a session."""
    return f"{session}.hidden_at IS NOT NULL"


def unhidden(session: str) -> str:
    """Whether a session is not hidden: the condition of indexes."""
    return f"{session}.hidden_at IS NULL"


def shown(session: str, host: str) -> str:
    """Whether others than the host may see a session. Arguments are aliases."""
    return f"{unhidden(session)} AND {host}.is_active"


def visible(session: str, host: str, reader: str = READER) -> str:
    """Whether a reader sees a session."""
    return f"({session}.host_id = {reader} OR ({shown(session, host)} AND {unblocked(reader, f'{session}.host_id')}))"


def is_change_announced(session: str, host: str, was_hidden: str) -> str:
    """SQL: whether others hear of a change."""
    return f"{host}.is_active AND NOT ({hidden(session)} AND {was_hidden})"


def host_in_feed(host_id: str) -> str:
    """Whether the host belongs to the reader's feed."""
    return f"({follows(READER, host_id)} AND {is_wanted(READER, host_id)})"


def concerns_others(session: str) -> str:
    """Whether a session concerns others: not if cancelled or missed."""
    return f"{session}.state IN ('upcoming', 'live', 'replay')"


def in_lineup(session: str) -> str:
    """Whether a session is in its host's lineup, even if the host is suspended."""
    return f"{session}.state IN ('upcoming', 'live') AND {unhidden(session)}"


def join_active_host(host_id: str) -> str:
    """A join that keeps active hosts. OFFSET 0 forces a probe per row."""
    return f"CROSS JOIN LATERAL (SELECT FROM accounts_user u WHERE u.id = {host_id} AND u.is_active OFFSET 0) u"


VISIBLE = visible("l", "h")
"""Whether the reader sees a session `l` of a host `h`."""
