"""Removes a deleted account's follows, requests, notes, blocks, mutes, lists and followed hashtags. Other users' counts
stay exact.
"""

from django.db import connection, transaction

# The account's own follows, under the lock of the follower's row.
FOLLOWS = """
    WITH follower AS (SELECT id FROM accounts_user WHERE id = %(user)s FOR NO KEY UPDATE),
    gone AS (
        DELETE FROM relations_follow WHERE id IN (
            SELECT f.id FROM relations_follow f JOIN follower ON follower.id = f.follower_id LIMIT %(limit)s
        ) RETURNING followee_id, uncounted_follower, uncounted_followee),
    changed AS (
        INSERT INTO relations_followercountchange (user_id, change)
        SELECT followee_id, -1 FROM gone WHERE uncounted_follower IS NULL)
    UPDATE accounts_user SET following_count = following_count - (SELECT count(*) FROM gone),
        uncounted_followees = uncounted_followees - (SELECT count(uncounted_followee) FROM gone)
    WHERE id = %(user)s AND EXISTS (SELECT FROM gone) RETURNING (SELECT count(*) FROM gone)
"""
# In the order of ids, and locked, so that a concurrent unfollow counts once.
LOCK_FOLLOWERS = """
    SELECT id FROM accounts_user WHERE id IN (
        SELECT follower_id FROM relations_follow WHERE followee_id = %(user)s ORDER BY follower_id LIMIT %(limit)s
    ) ORDER BY id FOR NO KEY UPDATE
"""
FOLLOWERS = """
    WITH gone AS (
        DELETE FROM relations_follow WHERE followee_id = %(user)s AND follower_id = ANY(%(followers)s)
        RETURNING follower_id, uncounted_follower, uncounted_followee),
    changed AS (
        INSERT INTO relations_followercountchange (user_id, change)
        SELECT %(user)s, -count(*) FROM gone WHERE uncounted_follower IS NULL HAVING count(*) > 0),
    counted AS (
        UPDATE accounts_user u SET following_count = u.following_count - 1,
            uncounted_followees = u.uncounted_followees - coalesce(gone.uncounted_followee, false)::int
        FROM gone WHERE u.id = gone.follower_id)
    SELECT count(*) FROM gone
"""
PAIRS = """
    DELETE FROM {table} WHERE id IN (
        (SELECT id FROM {table} WHERE {one}_id = %(user)s LIMIT %(limit)s)
        UNION ALL (SELECT id FROM {table} WHERE {other}_id = %(user)s LIMIT %(limit)s))
"""

# Without members: those went with the follows.
LISTS = """
    DELETE FROM relations_list WHERE id IN (
        SELECT l.id FROM relations_list l WHERE l.owner_id = %(user)s AND NOT EXISTS (
            SELECT FROM relations_listmember m WHERE m.list_id = l.id) LIMIT %(limit)s)
"""
# At most relations.tags.TAGS, under the lock of the row.
TAGS = """
    WITH follower AS (SELECT id FROM accounts_user WHERE id = %(user)s FOR NO KEY UPDATE),
    gone AS (DELETE FROM relations_tagfollow h USING follower WHERE h.user_id = follower.id RETURNING h.id)
    UPDATE accounts_user SET followed_tag_count = 0 WHERE id = %(user)s AND EXISTS (SELECT FROM gone)
    RETURNING (SELECT count(*) FROM gone)
"""


def purge(*, user_id: int, limit: int) -> int:
    """Delete about `limit` relations of each kind. Returns how many."""
    assert limit <= 2**15 - 1  # noqa: S101 (a staged change is a smallint)
    params = {"user": user_id, "limit": limit}
    with transaction.atomic(), connection.cursor() as cursor:
        taken = 0
        for query in (FOLLOWS, TAGS):
            cursor.execute(query, params)
            row = cursor.fetchone()
            taken += int(row[0]) if row else 0
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(LOCK_FOLLOWERS, params)
        followers = [row[0] for row in cursor.fetchall()]
        cursor.execute(FOLLOWERS, params | {"followers": followers})
        taken += int(cursor.fetchone()[0])
    with transaction.atomic(), connection.cursor() as cursor:
        for table, one, other in (
            ("relations_block", "blocker", "blocked"),
            ("relations_mute", "muter", "muted"),
            ("relations_followrequest", "follower", "followee"),
            ("relations_accountnote", "owner", "subject"),
        ):
            cursor.execute(PAIRS.format(table=table, one=one, other=other), params)
            taken += int(cursor.rowcount)
        cursor.execute(LISTS, params)
        taken += int(cursor.rowcount)
    return taken
