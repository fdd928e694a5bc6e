"""Rules of conversations, as SQL: which messages a list shows, and what waits for a reader."""

from items.visibility import private_mention_visible
from relations.rules import READER, mutes

NEWEST = 20
"""Newest messages checked to find one to show. The first message is checked too."""
CAP = 99
"""Unread conversations, and requests, are counted up to here."""
SCAN = 200
"""Newest conversations, and requests, that a count checks, in case most are hidden."""
UNREAD = "NOT p.is_request AND p.last > p.read"
"""Whether a conversation of a participant `p` may be unread."""
REQUEST = "p.is_request AND p.last IS NOT NULL"
"""Whether it may be listed as a request."""


def is_unmuted(reader: str = READER) -> str:
    """Whether the reader does not mute the sender of a message `i`."""
    return f"NOT {mutes(reader, 'i.sender_id')}"


def any_waiting(reader: str, which: str) -> str:
    """Whether the reader may have a conversation that is `UNREAD` or a `REQUEST`: one index probe."""
    return f"EXISTS (SELECT FROM items_participant p WHERE p.user_id = {reader} AND {which})"


def count_unread(reader: str) -> str:
    """A query of the number of unread conversations."""
    return _count(reader, UNREAD, "message.id > p.read")


def count_requests(reader: str) -> str:
    """A query of the number of requests, read or not."""
    return _count(reader, REQUEST, "true")


def _count(reader: str, which: str, shown: str) -> str:
    visible = f"{private_mention_visible('i', 's', reader)} AND {is_unmuted(reader)}"
    # OFFSET 0 forces a probe per message instead of a scan of all items.
    return f"""
    SELECT count(*) FROM (
        SELECT FROM (
            SELECT p.conversation_id, p.read FROM items_participant p
            WHERE p.user_id = {reader} AND {which} ORDER BY p.last DESC LIMIT {SCAN}
        ) p WHERE EXISTS (
            SELECT FROM (
                (SELECT id FROM items_item WHERE conversation_id = p.conversation_id ORDER BY id DESC LIMIT {NEWEST})
                UNION ALL SELECT p.conversation_id
            ) message CROSS JOIN LATERAL (
                SELECT FROM items_item i JOIN accounts_user s ON s.id = i.sender_id
                WHERE i.id = message.id AND {visible} OFFSET 0
            ) visible WHERE {shown}
        ) LIMIT {CAP}
    ) waiting
    """
