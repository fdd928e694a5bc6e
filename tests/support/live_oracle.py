"""The live feed as one plain SQL query. It shares no text with the queries of pages."""

from storage.connections import fetch

FEED = """
    SELECT s.id, s.state FROM live_livesession s
    JOIN accounts_user host ON host.id = s.host_id AND host.is_active
    JOIN relations_follow f ON f.follower_id = %(reader)s AND f.followee_id = s.host_id
    LEFT JOIN relations_block b ON b.blocker_id = %(reader)s AND b.blocked_id = s.host_id
    LEFT JOIN relations_block c ON c.blocker_id = s.host_id AND c.blocked_id = %(reader)s
    LEFT JOIN relations_mute m ON m.muter_id = %(reader)s AND m.muted_id = s.host_id
    WHERE b.id IS NULL AND c.id IS NULL AND m.id IS NULL AND s.hidden_at IS NULL
        AND s.state IN ('live', 'upcoming', 'replay')
    ORDER BY array_position(ARRAY['live', 'upcoming', 'replay'], s.state::text),
        CASE WHEN s.state = 'live' THEN s.started_at END DESC,
        CASE WHEN s.state = 'live' THEN s.id END DESC,
        CASE WHEN s.state = 'upcoming' THEN s.starts_at END,
        CASE WHEN s.state = 'upcoming' THEN s.id END,
        s.position DESC
"""


def feed(reader_id: int) -> list[tuple[int, str]]:
    """The reader's whole feed in order: ids and states."""
    return [(session_id, state) for session_id, state in fetch(FEED, {"reader": reader_id})]
