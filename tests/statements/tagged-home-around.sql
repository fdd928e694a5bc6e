    WITH tags AS MATERIALIZED (
    SELECT g.id, g.name, g.epoch FROM relations_tagfollow h JOIN relations_tag g ON g.id = h.tag_id WHERE h.user_id = $1
     ),
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
    feet AS MATERIALIZED (
        SELECT * FROM (
        SELECT senders.id, 'followers' AS circle, head.id AS head, head.repost_of_id
        FROM senders CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, i.repost_of_id FROM items_item i
    WHERE i.sender_id = senders.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility IN ('public', 'followers')
        AND i.id >= $2
    ORDER BY i.id ASC LIMIT 1
    ) head
        WHERE NOT senders.posts_only
         UNION ALL
        SELECT senders.id, 'posts' AS circle, head.id AS head, head.repost_of_id
        FROM senders CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, NULL::bigint AS repost_of_id FROM items_item i
    WHERE i.sender_id = senders.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility IN ('public', 'followers') AND i.repost_of_id IS NULL
        AND i.id >= $2
    ORDER BY i.id ASC LIMIT 1
    ) head
        WHERE senders.posts_only
         UNION ALL
        SELECT senders.id, 'mutuals' AS circle, head.id AS head, head.repost_of_id
        FROM senders CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, i.repost_of_id FROM items_item i
    WHERE i.sender_id = senders.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility = 'mutuals'
        AND i.id >= $2
    ORDER BY i.id ASC LIMIT 1
    ) head
         UNION ALL
        SELECT senders.id, 'self' AS circle, head.id AS head, head.repost_of_id
        FROM senders CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, i.repost_of_id FROM items_item i
    WHERE i.sender_id = senders.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility = 'self'
        AND i.id >= $2
    ORDER BY i.id ASC LIMIT 1
    ) head
        WHERE senders.id = $1
        ) foot WHERE $2 < 9007199254740992
    )
    SELECT id, repost_of_id FROM (
    WITH said AS MATERIALIZED (
    WITH stream AS MATERIALIZED (
        SELECT * FROM (SELECT * FROM feet ORDER BY head ASC OFFSET 0) stream WHERE (stream.id = $1 OR (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $1 AND b.blocked_id = stream.id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = stream.id AND b.blocked_id = $1 OFFSET 0) AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = $1 AND m.muted_id = stream.id  OFFSET 0) AND NOT EXISTS (SELECT FROM relations_listmember lm JOIN relations_list l ON l.id = lm.list_id WHERE lm.owner_id = $1 AND lm.member_id = stream.id AND l.is_exclusive OFFSET 0))) AND (stream.id = $1 OR EXISTS (SELECT FROM accounts_user u WHERE u.id = stream.id AND u.is_active OFFSET 0) AND (NOT (stream.circle = 'mutuals') OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = stream.id AND f.followee_id = $1  OFFSET 0))) LIMIT $3
    ),
    reach AS MATERIALIZED (
        SELECT CASE WHEN count(*) = $3 THEN max(head) ELSE 9007199254740992 END AS id FROM stream
    )
    SELECT * FROM (
        SELECT item.* FROM stream CROSS JOIN reach
            CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, i.repost_of_id FROM items_item i
    WHERE i.sender_id = stream.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility IN ('public', 'followers')
        AND i.id >= $2 AND i.id <= reach.id
    ORDER BY i.id ASC LIMIT $3
    ) item
        WHERE stream.circle = 'followers'
         UNION ALL
        SELECT item.* FROM stream CROSS JOIN reach
            CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, NULL::bigint AS repost_of_id FROM items_item i
    WHERE i.sender_id = stream.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility IN ('public', 'followers') AND i.repost_of_id IS NULL
        AND i.id >= $2 AND i.id <= reach.id
    ORDER BY i.id ASC LIMIT $3
    ) item
        WHERE stream.circle = 'posts'
         UNION ALL
        SELECT item.* FROM stream CROSS JOIN reach
            CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, i.repost_of_id FROM items_item i
    WHERE i.sender_id = stream.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility = 'mutuals'
        AND i.id >= $2 AND i.id <= reach.id
    ORDER BY i.id ASC LIMIT $3
    ) item
        WHERE stream.circle = 'mutuals'
         UNION ALL
        SELECT item.* FROM stream CROSS JOIN reach
            CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, i.repost_of_id FROM items_item i
    WHERE i.sender_id = stream.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility = 'self'
        AND i.id >= $2 AND i.id <= reach.id
    ORDER BY i.id ASC LIMIT $3
    ) item
        WHERE stream.circle = 'self'
        ) entry ORDER BY id ASC LIMIT $3
    ), tagged AS MATERIALIZED (
    WITH first AS MATERIALIZED (
        SELECT tags.name, post.id FROM tags CROSS JOIN LATERAL (
    SELECT i.id FROM (SELECT item_id AS id, tag FROM items_itemtag WHERE is_public_post) i
    WHERE i.tag = tags.name AND i.id >= $2 ORDER BY i.id ASC LIMIT least($3, 1 + 2 * $3 / (SELECT greatest(count(*), 1) FROM tags))
    ) post
    ),
    reach AS MATERIALIZED (
        SELECT CASE WHEN count(*) = $3 THEN max(id) ELSE 9007199254740992 END AS id
        FROM (SELECT DISTINCT id FROM first ORDER BY id ASC LIMIT $3) found
    ),
    tag AS MATERIALIZED (SELECT DISTINCT first.name FROM first JOIN reach ON first.id <= reach.id)
    SELECT post.id, min(tag.name) AS tag FROM reach CROSS JOIN tag
        CROSS JOIN LATERAL (
    SELECT i.id FROM (SELECT item_id AS id, tag FROM items_itemtag WHERE is_public_post) i
    WHERE i.tag = tag.name AND i.id >= $2 AND i.id <= reach.id ORDER BY i.id ASC LIMIT $3
    ) post
    GROUP BY post.id ORDER BY post.id ASC LIMIT $3
    )
    SELECT * FROM (
        SELECT said.id, said.sender_id, said.repost_of_id, NULL AS tag FROM said
        UNION ALL
        SELECT tagged.id, i.sender_id, NULL, tagged.tag FROM tagged JOIN items_item i ON i.id = tagged.id
        WHERE (tagged.id IN (SELECT said.id FROM said)) IS NOT TRUE
    ) entry ORDER BY id ASC LIMIT $3
    ) above
    UNION ALL
    SELECT id, repost_of_id FROM (
    WITH said AS MATERIALIZED (
    WITH stream AS MATERIALIZED (
        SELECT * FROM (SELECT * FROM heads ORDER BY head DESC OFFSET 0) stream WHERE (stream.id = $1 OR (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $1 AND b.blocked_id = stream.id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = stream.id AND b.blocked_id = $1 OFFSET 0) AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = $1 AND m.muted_id = stream.id  OFFSET 0) AND NOT EXISTS (SELECT FROM relations_listmember lm JOIN relations_list l ON l.id = lm.list_id WHERE lm.owner_id = $1 AND lm.member_id = stream.id AND l.is_exclusive OFFSET 0))) AND (stream.id = $1 OR EXISTS (SELECT FROM accounts_user u WHERE u.id = stream.id AND u.is_active OFFSET 0) AND (NOT (stream.circle = 'mutuals') OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = stream.id AND f.followee_id = $1  OFFSET 0))) LIMIT $4
    ),
    reach AS MATERIALIZED (
        SELECT CASE WHEN count(*) = $4 THEN min(head) ELSE 0 END AS id FROM stream
    )
    SELECT * FROM (
        SELECT item.* FROM stream CROSS JOIN reach
            CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, i.repost_of_id FROM items_item i
    WHERE i.sender_id = stream.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility IN ('public', 'followers')
        AND i.id < $2 AND i.id >= reach.id
    ORDER BY i.id DESC LIMIT $4
    ) item
        WHERE stream.circle = 'followers'
         UNION ALL
        SELECT item.* FROM stream CROSS JOIN reach
            CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, NULL::bigint AS repost_of_id FROM items_item i
    WHERE i.sender_id = stream.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility IN ('public', 'followers') AND i.repost_of_id IS NULL
        AND i.id < $2 AND i.id >= reach.id
    ORDER BY i.id DESC LIMIT $4
    ) item
        WHERE stream.circle = 'posts'
         UNION ALL
        SELECT item.* FROM stream CROSS JOIN reach
            CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, i.repost_of_id FROM items_item i
    WHERE i.sender_id = stream.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility = 'mutuals'
        AND i.id < $2 AND i.id >= reach.id
    ORDER BY i.id DESC LIMIT $4
    ) item
        WHERE stream.circle = 'mutuals'
         UNION ALL
        SELECT item.* FROM stream CROSS JOIN reach
            CROSS JOIN LATERAL (
    SELECT i.id, i.sender_id, i.repost_of_id FROM items_item i
    WHERE i.sender_id = stream.id AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility = 'self'
        AND i.id < $2 AND i.id >= reach.id
    ORDER BY i.id DESC LIMIT $4
    ) item
        WHERE stream.circle = 'self'
        ) entry ORDER BY id DESC LIMIT $4
    ), tagged AS MATERIALIZED (
    WITH first AS MATERIALIZED (
        SELECT tags.name, post.id FROM tags CROSS JOIN LATERAL (
    SELECT i.id FROM (SELECT item_id AS id, tag FROM items_itemtag WHERE is_public_post) i
    WHERE i.tag = tags.name AND i.id < $2 ORDER BY i.id DESC LIMIT least($4, 1 + 2 * $4 / (SELECT greatest(count(*), 1) FROM tags))
    ) post
    ),
    reach AS MATERIALIZED (
        SELECT CASE WHEN count(*) = $4 THEN min(id) ELSE 0 END AS id
        FROM (SELECT DISTINCT id FROM first ORDER BY id DESC LIMIT $4) found
    ),
    tag AS MATERIALIZED (SELECT DISTINCT first.name FROM first JOIN reach ON first.id >= reach.id)
    SELECT post.id, min(tag.name) AS tag FROM reach CROSS JOIN tag
        CROSS JOIN LATERAL (
    SELECT i.id FROM (SELECT item_id AS id, tag FROM items_itemtag WHERE is_public_post) i
    WHERE i.tag = tag.name AND i.id < $2 AND i.id >= reach.id ORDER BY i.id DESC LIMIT $4
    ) post
    GROUP BY post.id ORDER BY post.id DESC LIMIT $4
    )
    SELECT * FROM (
        SELECT said.id, said.sender_id, said.repost_of_id, NULL AS tag FROM said
        UNION ALL
        SELECT tagged.id, i.sender_id, NULL, tagged.tag FROM tagged JOIN items_item i ON i.id = tagged.id
        WHERE (tagged.id IN (SELECT said.id FROM said)) IS NOT TRUE
    ) entry ORDER BY id DESC LIMIT $4
    ) below
    ORDER BY id DESC
