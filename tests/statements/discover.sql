    WITH mine AS MATERIALIZED (
        SELECT followee_id, exp(-least(greatest(date_part('epoch', $1 - created_at) / 31536000, 0), 100)) AS weight FROM (
            SELECT followee_id, created_at FROM relations_follow WHERE follower_id = $2 ORDER BY id DESC LIMIT 30) newest
    ), alike AS MATERIALIZED (
        SELECT f.follower_id, sum(mine.weight * f.weight / ln(2 + f.followers)) AS weight
        FROM mine CROSS JOIN LATERAL (
            SELECT follower_id, exp(-least(greatest(date_part('epoch', $1 - created_at) / 31536000, 0), 100)) AS weight, count(*) OVER () AS followers FROM (
                SELECT follower_id, created_at FROM relations_follow WHERE followee_id = mine.followee_id ORDER BY id DESC LIMIT 20) newest
        ) f WHERE f.follower_id <> $2 GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 80
    ), likewise AS (
        SELECT f.followee_id AS sender_id, sum(alike.weight * f.weight / sqrt(f.follows)) AS weight
        FROM alike CROSS JOIN LATERAL (
            SELECT followee_id, exp(-least(greatest(date_part('epoch', $1 - created_at) / 15552000, 0), 100)) AS weight, count(*) OVER () AS follows FROM (
                SELECT followee_id, created_at FROM relations_follow WHERE follower_id = alike.follower_id ORDER BY id DESC LIMIT 40) newest
        ) f GROUP BY 1
    ), friends AS (
        SELECT f.followee_id AS sender_id, sum(mine.weight * f.weight / sqrt(f.follows)) AS weight
        FROM (SELECT * FROM mine LIMIT 15) mine CROSS JOIN LATERAL (
            SELECT followee_id, exp(-least(greatest(date_part('epoch', $1 - created_at) / 15552000, 0), 100)) AS weight, count(*) OVER () AS follows FROM (
                SELECT followee_id, created_at FROM relations_follow WHERE follower_id = mine.followee_id ORDER BY id DESC LIMIT 20) newest
        ) f GROUP BY 1
    ), followers AS (
        SELECT follower_id AS sender_id, exp(-least(greatest(date_part('epoch', $1 - created_at) / 31536000, 0), 100)) AS weight FROM (
            SELECT follower_id, created_at FROM relations_follow WHERE followee_id = $2 ORDER BY id DESC LIMIT 50) newest
    ), met AS (
        SELECT item_id FROM (
            SELECT item_id FROM items_like WHERE user_id = $2 ORDER BY item_id DESC LIMIT 40) liked
        UNION ALL
        SELECT reply_to_id FROM (
            SELECT reply_to_id FROM items_item WHERE sender_id = $2 AND id < $3
            ORDER BY id DESC LIMIT 30) own
        WHERE reply_to_id IS NOT NULL
    ), known AS (
        SELECT i.sender_id, count(*) AS weight FROM met JOIN items_item i ON i.id = met.item_id GROUP BY 1
    ), senders AS MATERIALIZED (
        SELECT sender_id, sum(weight) AS weight, bool_or(is_follower) AS is_follower, bool_or(is_known) AS is_known,
            bool_or(is_friend) AS is_friend
        FROM (
            SELECT sender_id, weight / max(weight) OVER () AS weight, false AS is_follower, false AS is_known,
                false AS is_friend FROM likewise
            UNION ALL SELECT sender_id, 0.05 * weight / max(weight) OVER (), false, false, true FROM friends
            UNION ALL SELECT sender_id, 0.3 * weight, true, false, false FROM followers
            UNION ALL SELECT sender_id, 0.5::float8 * weight / max(weight) OVER (), false, true, false FROM known
            OFFSET 0  -- or the followees are read once for each of the four
        ) near WHERE sender_id <> $2 AND sender_id NOT IN (SELECT followee_id FROM relations_follow WHERE follower_id = $2)
        GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 150
    )
, posts AS MATERIALIZED (
        SELECT p.id, s.sender_id, s.is_follower, s.is_known, s.is_friend,
            s.weight * 0.95::float8 ^ (p.place - 1) AS weight
        FROM senders s CROSS JOIN LATERAL (
            SELECT id, row_number() OVER (ORDER BY id DESC) AS place FROM (
                SELECT i.id FROM items_item i
                WHERE i.sender_id = s.sender_id AND i.status = 'published' AND i.visibility = 'public' AND i.reply_to_id IS NULL AND i.repost_of_id IS NULL AND i.id < $3
                ORDER BY i.id DESC LIMIT 3) newest
        ) p ORDER BY ln(s.weight) + (-$4::float8 * greatest((($5::bigint >> 12) - (p.id >> 12)) / 86400000.0::float8 - $6::float8, 0) ^ 2) DESC, p.id DESC LIMIT 200
    ),
    told AS MATERIALIZED (
        SELECT s.sender_id, (
            SELECT count(*) FROM mine WHERE EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = mine.followee_id AND f.followee_id = s.sender_id  OFFSET 0)
        ) AS friends FROM (SELECT sender_id FROM posts WHERE is_friend GROUP BY 1 ORDER BY max(weight) DESC, 1 LIMIT 20) s
    )
    SELECT id, weight::float8, CASE WHEN is_known THEN 'sender' WHEN friends > 0 THEN 'follows:' || friends
    WHEN is_follower THEN 'follower' ELSE 'similar' END, sender_id FROM posts LEFT JOIN told USING (sender_id)
