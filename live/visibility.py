"""The one rule of who may see a live session, as SQL text for every query that shows sessions or tells of them.

`%(reader)s` is the reader's id; for readers who are not signed in it is 0. Other readers than its host see a session if
no moderator hides it, its host is active, and neither blocks the other. A feed asks besides whether the host
`belongs` to it. Queries that fill windows and lineups ask a part of the rule, because a reader verifies what they hold.

See docs/decisions.md: Who may see what is SQL text in one place.
"""

from relations.rules import READER, follows, is_wanted, unblocked


def hidden(session: str) -> str:
    """Whether moderators hide a session from all but its host; the alias names its row."""
    return f"{session}.hidden_at IS NOT NULL"


def unhidden(session: str) -> str:
    """The opposite, as the indexes of shown replays have it."""
    return f"{session}.hidden_at IS NULL"


def shown(session: str, host: str) -> str:
    """Whether others than its host may see a session; the aliases name its row and its host's."""
    return f"{unhidden(session)} AND {host}.is_active"


def visible(session: str, host: str, reader: str = READER) -> str:
    """Whether a reader may see a session wherever they meet it: their own, or one that is shown, with no block."""
    return f"({session}.host_id = {reader} OR ({shown(session, host)} AND {unblocked(reader, f'{session}.host_id')}))"


def announced(session: str, host: str, was_hidden: str) -> str:
    """Whether others than its host are told that a session changed. Not only if it is shown: those who saw it before,
    when it was not hidden, hear that it went. `was_hidden` is an expression.
    """
    return f"{host}.is_active AND NOT ({hidden(session)} AND {was_hidden})"


def belongs(host_id: str) -> str:
    """Whether the sessions of a host belong to the reader's feed."""
    return f"({follows(READER, host_id)} AND {is_wanted(READER, host_id)})"


def of_interest(session: str) -> str:
    """Whether a session concerns others than its host: not after it was cancelled or missed."""
    return f"{session}.state IN ('upcoming', 'live', 'replay')"


def in_lineup(session: str) -> str:
    """Whether a session is in its host's lineup. Suspended hosts keep theirs, and the verifying query decides."""
    return f"{session}.state IN ('upcoming', 'live') AND {unhidden(session)}"


def active_only(host_id: str) -> str:
    """A join that keeps the rows with an active host. OFFSET 0: a probe a row."""
    return f"CROSS JOIN LATERAL (SELECT FROM accounts_user u WHERE u.id = {host_id} AND u.is_active OFFSET 0) u"


VISIBLE = visible("l", "h")
"""For a session `l` and its host `h`."""
