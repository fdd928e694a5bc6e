"""The oracle: a home timeline as one plain SQL query says it. Everything else must agree with it, at every moment.

It shares no text with the queries that serve pages, so that a mistake there is not a mistake here.
"""

from feedsite.connections import fetch

ORACLE = """
    SELECT i.id, i.sender_id FROM items_item i JOIN accounts_user sender ON sender.id = i.sender_id
    LEFT JOIN relations_follow f ON f.follower_id = %(reader)s AND f.followee_id = i.sender_id
    LEFT JOIN relations_follow back ON back.follower_id = i.sender_id AND back.followee_id = %(reader)s
    LEFT JOIN relations_block b ON b.blocker_id = %(reader)s AND b.blocked_id = i.sender_id
    LEFT JOIN relations_block c ON c.blocker_id = i.sender_id AND c.blocked_id = %(reader)s
    LEFT JOIN relations_mute m ON m.muter_id = %(reader)s AND m.muted_id = i.sender_id
    WHERE i.status = 'published' AND i.reply_to_id IS NULL AND i.id > %(above)s
    AND (
        i.sender_id = %(reader)s
        OR f.id IS NOT NULL AND b.id IS NULL AND c.id IS NULL AND m.id IS NULL AND sender.is_active
            AND (i.visibility IN ('public', 'followers') OR i.visibility = 'mutuals' AND back.id IS NOT NULL)
    )
    ORDER BY i.id DESC
"""


def home_ids(reader_id: int, *, above: int = 0) -> list[int]:
    """Every item of the reader's home timeline with an id above `above`, newest first."""
    return [row[0] for row in fetch(ORACLE, {"reader": reader_id, "above": above})]
