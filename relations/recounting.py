"""Takes a hidden account out of follower counts and counts of followees, and puts it back (accounts.recounting)."""

from storage.connections import fetch, id_array

FOLLOWERS = """
    SELECT follower_id FROM relations_follow WHERE followee_id = %(user)s AND follower_id > %(after)s
    ORDER BY follower_id LIMIT %(limit)s
"""
# As an unfollow does: the follower's row is locked before the follow.
LOCK = "SELECT id FROM accounts_user WHERE id = ANY(%(followers)s::bigint[]) ORDER BY id FOR NO KEY UPDATE"
# A probe for each follower, or PostgreSQL may read all of them. It asks for the mark, which no index has. Otherwise
# PostgreSQL may take an index that has the id but not the pair in front, to spare the table, and read all follows of
# one of the two.
AS_FOLLOWEE = """
    WITH changed AS (
        UPDATE relations_follow SET uncounted_followee = %(mark)s
        WHERE id = ANY(ARRAY(
            SELECT (
                SELECT f.id FROM relations_follow f WHERE f.followee_id = %(user)s AND f.follower_id = one.id
                AND f.uncounted_followee IS DISTINCT FROM %(mark)s
            ) FROM unnest(%(followers)s::bigint[]) AS one (id)
        )) AND uncounted_followee IS DISTINCT FROM %(mark)s RETURNING follower_id
    )
    UPDATE accounts_user u SET uncounted_followees = u.uncounted_followees - %(change)s::smallint
    FROM changed WHERE u.id = changed.follower_id RETURNING u.id
"""
AS_FOLLOWER = """
    WITH part AS MATERIALIZED (
        SELECT id FROM relations_follow WHERE follower_id = %(user)s AND id > %(after)s ORDER BY id LIMIT %(limit)s
    ),
    changed AS (
        UPDATE relations_follow SET uncounted_follower = %(mark)s
        WHERE id = ANY(ARRAY(SELECT id FROM part)) AND uncounted_follower IS DISTINCT FROM %(mark)s
        RETURNING followee_id
    ),
    staged AS (
        INSERT INTO relations_followercountchange (user_id, change)
        SELECT followee_id, %(change)s::smallint FROM changed
    )
    SELECT max(id) FROM part
"""


def recount(user_id: int, places: dict[str, int], limit: int, *, is_hidden: bool) -> bool:
    """Recount a part of the followers and of the followees, in a transaction."""
    params = {"user": user_id, "limit": limit, "mark": True if is_hidden else None, "change": -1 if is_hidden else 1}
    after = places.get("followers", 0)
    followers = [follower for (follower,) in fetch(FOLLOWERS, params | {"after": after})]
    if followers:
        found = {"followers": id_array(followers)}
        fetch(LOCK, found)
        fetch(AS_FOLLOWEE, params | found)
        after = followers[-1]
    follows = fetch(AS_FOLLOWER, params | {"after": places.get("follows", 0)})[0][0]
    places |= {"followers": after, "follows": follows or places.get("follows", 0)}
    return bool(followers or follows)
