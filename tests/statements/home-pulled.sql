    WITH
    senders AS MATERIALIZED (
    SELECT followee_id AS id, (followee_id IN (SELECT followee_id FROM relations_follow WHERE follower_id = $1 AND NOT reposts)) IS TRUE AS posts_only FROM relations_follow WHERE follower_id = $1
    UNION ALL SELECT $1::bigint, false
    ),
    heads AS MATERIALIZED (
        SELECT senders.id, 'followers' AS circle, head.id AS head, head.repost_of_id
        FROM senders CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, i.repost_of_id FROM items_item i
    WHERE i.sender_id = senders.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility IN ('public', 'followers')
        AND i.id < $2
    ORDER BY i.id DESC LIMIT 1
    ) head
        WHERE NOT senders.posts_only
         UNION ALL
        SELECT senders.id, 'posts' AS circle, head.id AS head, head.repost_of_id
        FROM senders CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, NULL::bigint AS repost_of_id FROM items_item i
    WHERE i.sender_id = senders.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility IN ('public', 'followers') AND i.repost_of_id IS NULL
        AND i.id < $2
    ORDER BY i.id DESC LIMIT 1
    ) head
        WHERE senders.posts_only
         UNION ALL
        SELECT senders.id, 'mutuals' AS circle, head.id AS head, head.repost_of_id
        FROM senders CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, i.repost_of_id FROM items_item i
    WHERE i.sender_id = senders.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility = 'mutuals'
        AND i.id < $2
    ORDER BY i.id DESC LIMIT 1
    ) head
         UNION ALL
        SELECT senders.id, 'self' AS circle, head.id AS head, head.repost_of_id
        FROM senders CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, i.repost_of_id FROM items_item i
    WHERE i.sender_id = senders.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility = 'self'
        AND i.id < $2
    ORDER BY i.id DESC LIMIT 1
    ) head
        WHERE senders.id = $1
        ),
    pulled AS MATERIALIZED (
    WITH stream AS MATERIALIZED (
        SELECT * FROM (SELECT * FROM heads ORDER BY head DESC OFFSET 0) stream WHERE (stream.id = $1 OR (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $1 AND b.blocked_id = stream.id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = stream.id AND b.blocked_id = $1 OFFSET 0) AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = $1 AND m.muted_id = stream.id  OFFSET 0) AND NOT EXISTS (SELECT FROM relations_listmember lm JOIN relations_list l ON l.id = lm.list_id WHERE lm.owner_id = $1 AND lm.member_id = stream.id AND l.is_exclusive OFFSET 0))) AND (stream.id = $1 OR EXISTS (SELECT FROM accounts_user u WHERE u.id = stream.id AND u.is_active OFFSET 0) AND (NOT (stream.circle = 'mutuals') OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = stream.id AND f.followee_id = $1  OFFSET 0))) LIMIT $3
    ),
    reach AS MATERIALIZED (
        SELECT CASE WHEN count(*) = $3 THEN min(head) ELSE 0 END AS id FROM stream
    )
    SELECT * FROM (
        SELECT item.* FROM stream CROSS JOIN reach
            CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, i.repost_of_id FROM items_item i
    WHERE i.sender_id = stream.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility IN ('public', 'followers')
        AND i.id < $2 AND i.id >= reach.id
    ORDER BY i.id DESC LIMIT $3
    ) item
        WHERE stream.circle = 'followers'
         UNION ALL
        SELECT item.* FROM stream CROSS JOIN reach
            CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, NULL::bigint AS repost_of_id FROM items_item i
    WHERE i.sender_id = stream.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility IN ('public', 'followers') AND i.repost_of_id IS NULL
        AND i.id < $2 AND i.id >= reach.id
    ORDER BY i.id DESC LIMIT $3
    ) item
        WHERE stream.circle = 'posts'
         UNION ALL
        SELECT item.* FROM stream CROSS JOIN reach
            CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, i.repost_of_id FROM items_item i
    WHERE i.sender_id = stream.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility = 'mutuals'
        AND i.id < $2 AND i.id >= reach.id
    ORDER BY i.id DESC LIMIT $3
    ) item
        WHERE stream.circle = 'mutuals'
         UNION ALL
        SELECT item.* FROM stream CROSS JOIN reach
            CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, i.repost_of_id FROM items_item i
    WHERE i.sender_id = stream.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility = 'self'
        AND i.id < $2 AND i.id >= reach.id
    ORDER BY i.id DESC LIMIT $3
    ) item
        WHERE stream.circle = 'self'
        ) entry ORDER BY id DESC LIMIT $3
    )
    ,
    placed AS (SELECT pulled.*, row_number() OVER (ORDER BY pulled.id DESC) AS place FROM pulled)
    SELECT placed.id, placed.sender_id, true,
    (i.repost_of_id IS NULL OR EXISTS (
        SELECT FROM items_item o JOIN accounts_user os ON os.id = o.sender_id
        WHERE o.id = i.repost_of_id AND o.status = 'published' AND
    (
    ((o.sender_id = $1 AND o.status <> 'deleted') OR (
        o.status = 'published' AND os.is_active
        AND (o.visibility = 'public' OR (o.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = $1 AND f.followee_id = o.sender_id  )
            AND (o.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = o.sender_id AND f.followee_id = $1  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $1 AND b.blocked_id = o.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = o.sender_id AND b.blocked_id = $1 OFFSET 0))))
     AND (o.root_id IS NULL OR o.sender_id = $1 OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = o.root_id AND
    ((root.sender_id = $1 AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = $1 AND f.followee_id = root.sender_id  )
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = $1  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $1 AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = $1 OFFSET 0))))
     OFFSET 0)))
     AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = $1 AND m.muted_id = o.sender_id  OFFSET 0)
        OFFSET 0))
    ,
    i.id, i.type, i.title, i.content::text, i.extra_info::text, i.media::text,
    i.visibility, i.status, i.created_at, i.modified_at, i.reply_to_id, i.repost_of_id,
    i.quote_of_id, i.quotable_by,
    CASE WHEN i.root_id IS NULL THEN i.repliable_by
        ELSE (SELECT t.repliable_by FROM items_item t WHERE t.id = i.root_id) END,
    i.is_continued,
    (SELECT c.facts::text FROM items_linkcard c WHERE c.id = i.link_card_id),
    s.id, s.username, s.display_name, s.is_big_v, s.avatar::text
    ,
    (
        SELECT ARRAY[
            coalesce(sum(n.likes), 0),
            coalesce(sum(n.replies) + CASE WHEN coalesce(o.visibility, i.visibility) = 'public' THEN 0 ELSE sum(n.circle_replies) END, 0),
            coalesce(sum(n.reposts), 0), coalesce(sum(n.quotes), 0)
        ]::int[] FROM (
            SELECT likes, replies, circle_replies, reposts, quotes FROM items_itemcounts WHERE item_id = coalesce(o.id, i.id)
            UNION ALL
            SELECT likes, replies, circle_replies, reposts, quotes FROM items_countchange WHERE item_id = coalesce(o.id, i.id)
        ) n)
    ,
    EXISTS (SELECT FROM items_like l WHERE l.user_id = $1 AND l.item_id = coalesce(o.id, i.id) OFFSET 0),
    EXISTS (SELECT FROM items_item r
        WHERE r.repost_of_id = coalesce(o.id, i.id) AND r.sender_id = $1 AND r.status = 'published' OFFSET 0),
    EXISTS (SELECT FROM items_bookmark m WHERE m.user_id = $1 AND m.item_id = coalesce(o.id, i.id) OFFSET 0)
    ,
    o.id, o.type, o.title, o.content::text, o.extra_info::text, o.media::text,
    o.visibility, o.status, o.created_at, o.modified_at, o.reply_to_id, o.repost_of_id,
    o.quote_of_id, o.quotable_by,
    CASE WHEN o.root_id IS NULL THEN o.repliable_by
        ELSE (SELECT t.repliable_by FROM items_item t WHERE t.id = o.root_id) END,
    o.is_continued,
    (SELECT c.facts::text FROM items_linkcard c WHERE c.id = o.link_card_id),
    os.id, os.username, os.display_name, os.is_big_v, os.avatar::text
, (SELECT p.inbox_from FROM accounts_policy p)
    FROM placed LEFT JOIN items_item i ON i.id = placed.id AND placed.place <= $4
        LEFT JOIN accounts_user s ON s.id = i.sender_id LEFT JOIN items_item o ON o.id = i.repost_of_id LEFT JOIN accounts_user os ON os.id = o.sender_id
    ORDER BY placed.place
