"""The oracle: home and lists as one plain SQL query each. Every page must equal it at every moment.

It shares no text with the queries of pages, so that they cannot share a mistake.
"""

from storage.connections import fetch

# Members of exclusive lists leave home. A list has only its members.
OF_HOME = """
    i.sender_id NOT IN (
        SELECT out.member_id FROM relations_listmember out JOIN relations_list l ON l.id = out.list_id
        WHERE l.owner_id = %(reader)s AND l.is_exclusive)
"""
OF_LIST = """
    i.sender_id IN (
        SELECT in_it.member_id FROM relations_listmember in_it JOIN relations_list l ON l.id = in_it.list_id
        WHERE l.owner_id = %(reader)s AND l.id = %(list)s)
"""
# A hidden post (its sender is turned away) still takes a place. Nothing is folded into it.
BY_TAG = """
    i.visibility = 'public' AND i.repost_of_id IS NULL AND EXISTS (
        SELECT FROM relations_tagfollow wanted JOIN relations_tag named ON named.id = wanted.tag_id
        JOIN items_itemtag carried ON carried.tag = named.name
        WHERE wanted.user_id = %(reader)s AND carried.item_id = i.id)
"""
ENTRIES, LIST_ENTRIES = (
    f"""
    SELECT i.id, i.repost_of_id, row_number() OVER (ORDER BY i.id DESC) AS place, why.by_sender,
    CASE WHEN NOT why.by_sender THEN sender.is_active AND b.id IS NULL AND c.id IS NULL AND m.id IS NULL AND {among}
    ELSE (
        said.id IS NULL
        OR said.status = 'published' AND am.id IS NULL AND (
            said.sender_id = %(reader)s
            OR author.is_active AND ab.id IS NULL AND ac.id IS NULL AND (
                said.visibility = 'public'
                OR said.visibility = 'followers' AND af.id IS NOT NULL
                OR said.visibility = 'mutuals' AND af.id IS NOT NULL AND aback.id IS NOT NULL))
    )
    AND (
        top.id IS NULL
        OR said.sender_id = %(reader)s
        OR top.sender_id = %(reader)s AND top.status <> 'deleted'
        OR top.status = 'published' AND starter.is_active AND tb.id IS NULL AND tc.id IS NULL AND (
            top.visibility = 'public'
            OR top.visibility = 'followers' AND tf.id IS NOT NULL
            OR top.visibility = 'mutuals' AND tf.id IS NOT NULL AND tback.id IS NOT NULL)
    ) END AS is_shown
    FROM items_item i JOIN accounts_user sender ON sender.id = i.sender_id
    LEFT JOIN relations_follow f ON f.follower_id = %(reader)s AND f.followee_id = i.sender_id
    LEFT JOIN relations_follow back ON back.follower_id = i.sender_id AND back.followee_id = %(reader)s
    LEFT JOIN relations_block b ON b.blocker_id = %(reader)s AND b.blocked_id = i.sender_id
    LEFT JOIN relations_block c ON c.blocker_id = i.sender_id AND c.blocked_id = %(reader)s
    LEFT JOIN relations_mute m ON m.muter_id = %(reader)s AND m.muted_id = i.sender_id
    LEFT JOIN items_item said ON said.id = i.repost_of_id
    LEFT JOIN accounts_user author ON author.id = said.sender_id
    LEFT JOIN relations_follow af ON af.follower_id = %(reader)s AND af.followee_id = said.sender_id
    LEFT JOIN relations_follow aback ON aback.follower_id = said.sender_id AND aback.followee_id = %(reader)s
    LEFT JOIN relations_block ab ON ab.blocker_id = %(reader)s AND ab.blocked_id = said.sender_id
    LEFT JOIN relations_block ac ON ac.blocker_id = said.sender_id AND ac.blocked_id = %(reader)s
    LEFT JOIN relations_mute am ON am.muter_id = %(reader)s AND am.muted_id = said.sender_id
    LEFT JOIN items_item top ON top.id = said.root_id
    LEFT JOIN accounts_user starter ON starter.id = top.sender_id
    LEFT JOIN relations_follow tf ON tf.follower_id = %(reader)s AND tf.followee_id = top.sender_id
    LEFT JOIN relations_follow tback ON tback.follower_id = top.sender_id AND tback.followee_id = %(reader)s
    LEFT JOIN relations_block tb ON tb.blocker_id = %(reader)s AND tb.blocked_id = top.sender_id
    LEFT JOIN relations_block tc ON tc.blocker_id = top.sender_id AND tc.blocked_id = %(reader)s
    CROSS JOIN LATERAL (
        SELECT (
            i.sender_id = %(reader)s
            OR f.id IS NOT NULL AND b.id IS NULL AND c.id IS NULL AND m.id IS NULL AND sender.is_active
                AND (i.repost_of_id IS NULL OR f.reposts)
                AND (i.visibility IN ('public', 'followers') OR i.visibility = 'mutuals' AND back.id IS NOT NULL)
        ) AND {among} AS by_sender
    ) why
    WHERE i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility <> 'mentioned' AND i.id > %(above)s
        AND (why.by_sender OR {by_tag})
    """
    for among, by_tag in ((OF_HOME, BY_TAG), (OF_LIST, "false"))
)
HOME, LIST = (
    f"""
    WITH entries AS ({entries})
    SELECT e.id FROM entries e WHERE e.is_shown AND (e.repost_of_id IS NULL OR NOT EXISTS (
        SELECT FROM entries nearby
        WHERE nearby.repost_of_id = e.repost_of_id AND nearby.place < e.place AND e.place - nearby.place <= %(reach)s
        OR nearby.id = e.repost_of_id AND nearby.place > e.place AND nearby.place - e.place <= %(reach)s
            AND nearby.is_shown
    )) ORDER BY e.place
    """
    for entries in (ENTRIES, LIST_ENTRIES)
)
NEW = f"""
    WITH home AS ({HOME})
    SELECT i.id FROM home JOIN items_item i ON i.id = home.id
    WHERE i.id > %(since)s AND (i.sender_id <> %(reader)s OR i.repost_of_id IS NULL AND NOT %(of_others)s)
    ORDER BY i.id DESC
"""
REACH = 40


def entry_ids(reader_id: int, *, above: int = 0, by_sender: bool = False) -> list[int]:
    """All entries above an id, also folded and hidden ones. `by_sender`: without entries by hashtags alone."""
    rows = fetch(ENTRIES, {"reader": reader_id, "above": above})
    return sorted((row[0] for row in rows if row[3] or not by_sender), reverse=True)


def home_ids(reader_id: int, *, above: int = 0) -> list[int]:
    """All items of a home, newest first. `above` cuts it off before folding."""
    return [row[0] for row in fetch(HOME, {"reader": reader_id, "above": above, "reach": REACH})]


def new_ids(reader_id: int, *, since: int, of_others: bool = False) -> list[int]:
    """All new items above an id, newest first, without own reposts; or those of others alone."""
    params = {"reader": reader_id, "above": 0, "since": since, "reach": REACH, "of_others": of_others}
    return [row[0] for row in fetch(NEW, params)]


def list_ids(reader_id: int, list_id: int) -> list[int]:
    """All items of a list, newest first."""
    return [row[0] for row in fetch(LIST, {"reader": reader_id, "list": list_id, "above": 0, "reach": REACH})]
