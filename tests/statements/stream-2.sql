    WITH
    i AS MATERIALIZED (
        SELECT event.place, event.before IS NOT NULL AS before, stated.*
        FROM unnest($1::int[], $2::bigint[], $3::text[]) AS event (place, item, before)
        JOIN items_item stored ON stored.id = event.item
        CROSS JOIN LATERAL jsonb_populate_record(stored, CASE WHEN event.before IS NULL THEN '{}'
            ELSE jsonb_build_object('status', 'published', 'visibility', event.before) END) AS stated
    )
, watch AS MATERIALIZED (
        SELECT * FROM unnest($4::bigint[], $5::text[], $6::bigint[])
            WITH ORDINALITY AS one (reader, tag, list, place)
    )
    SELECT i.place, i.before, i.id, watch.place FROM watch JOIN i ON i.status = 'published' AND i.visibility = 'public' AND i.reply_to_id IS NULL AND i.repost_of_id IS NULL
    JOIN accounts_user s ON s.id = i.sender_id WHERE watch.tag = '' AND watch.list = 0 AND ((
    (
    ((i.sender_id = watch.reader AND i.status <> 'deleted') OR (
        i.status = 'published' AND s.is_active
        AND (i.visibility = 'public' OR (i.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = watch.reader AND f.followee_id = i.sender_id  OFFSET 0)
            AND (i.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = i.sender_id AND f.followee_id = watch.reader  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = watch.reader AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = watch.reader OFFSET 0))))
     AND (i.root_id IS NULL OR i.sender_id = watch.reader OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = i.root_id AND
    ((root.sender_id = watch.reader AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = watch.reader AND f.followee_id = root.sender_id  OFFSET 0)
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = watch.reader  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = watch.reader AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = watch.reader OFFSET 0))))
     OFFSET 0)))
     AND
    (i.repost_of_id IS NULL OR EXISTS (
        SELECT FROM items_item o JOIN accounts_user os ON os.id = o.sender_id
        WHERE o.id = i.repost_of_id AND o.status = 'published' AND
    (
    ((o.sender_id = watch.reader AND o.status <> 'deleted') OR (
        o.status = 'published' AND os.is_active
        AND (o.visibility = 'public' OR (o.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = watch.reader AND f.followee_id = o.sender_id  OFFSET 0)
            AND (o.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = o.sender_id AND f.followee_id = watch.reader  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = watch.reader AND b.blocked_id = o.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = o.sender_id AND b.blocked_id = watch.reader OFFSET 0))))
     AND (o.root_id IS NULL OR o.sender_id = watch.reader OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = o.root_id AND
    ((root.sender_id = watch.reader AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = watch.reader AND f.followee_id = root.sender_id  OFFSET 0)
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = watch.reader  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = watch.reader AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = watch.reader OFFSET 0))))
     OFFSET 0)))
        OFFSET 0))
    ) OR
    (i.visibility = 'mentioned' AND i.status = 'published' AND s.is_active
        AND EXISTS (SELECT FROM items_participant p
            WHERE p.conversation_id = coalesce(i.conversation_id, i.id) AND p.user_id = watch.reader OFFSET 0)
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = watch.reader AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = watch.reader OFFSET 0)))
    )
    UNION ALL
    SELECT i.place, i.before, i.id, watch.place FROM watch JOIN i ON EXISTS (SELECT FROM items_itemtag t WHERE t.tag = watch.tag AND t.item_id = i.id OFFSET 0)
    JOIN accounts_user s ON s.id = i.sender_id WHERE watch.tag <> '' AND ((
    (
    ((i.sender_id = watch.reader AND i.status <> 'deleted') OR (
        i.status = 'published' AND s.is_active
        AND (i.visibility = 'public' OR (i.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = watch.reader AND f.followee_id = i.sender_id  OFFSET 0)
            AND (i.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = i.sender_id AND f.followee_id = watch.reader  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = watch.reader AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = watch.reader OFFSET 0))))
     AND (i.root_id IS NULL OR i.sender_id = watch.reader OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = i.root_id AND
    ((root.sender_id = watch.reader AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = watch.reader AND f.followee_id = root.sender_id  OFFSET 0)
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = watch.reader  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = watch.reader AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = watch.reader OFFSET 0))))
     OFFSET 0)))
     AND
    (i.repost_of_id IS NULL OR EXISTS (
        SELECT FROM items_item o JOIN accounts_user os ON os.id = o.sender_id
        WHERE o.id = i.repost_of_id AND o.status = 'published' AND
    (
    ((o.sender_id = watch.reader AND o.status <> 'deleted') OR (
        o.status = 'published' AND os.is_active
        AND (o.visibility = 'public' OR (o.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = watch.reader AND f.followee_id = o.sender_id  OFFSET 0)
            AND (o.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = o.sender_id AND f.followee_id = watch.reader  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = watch.reader AND b.blocked_id = o.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = o.sender_id AND b.blocked_id = watch.reader OFFSET 0))))
     AND (o.root_id IS NULL OR o.sender_id = watch.reader OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = o.root_id AND
    ((root.sender_id = watch.reader AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = watch.reader AND f.followee_id = root.sender_id  OFFSET 0)
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = watch.reader  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = watch.reader AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = watch.reader OFFSET 0))))
     OFFSET 0)))
        OFFSET 0))
    ) OR
    (i.visibility = 'mentioned' AND i.status = 'published' AND s.is_active
        AND EXISTS (SELECT FROM items_participant p
            WHERE p.conversation_id = coalesce(i.conversation_id, i.id) AND p.user_id = watch.reader OFFSET 0)
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = watch.reader AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = watch.reader OFFSET 0)))
    )
    UNION ALL
    SELECT i.place, i.before, i.id, watch.place FROM watch JOIN i ON i.sender_id IN (SELECT member_id FROM relations_listmember WHERE list_id = watch.list)
    JOIN accounts_user s ON s.id = i.sender_id WHERE watch.list <> 0 AND i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility <> 'mentioned' AND (i.visibility <> 'self' OR i.sender_id = watch.reader) AND (i.sender_id = watch.reader OR (EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = watch.reader AND f.followee_id = i.sender_id  OFFSET 0) AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = watch.reader AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = watch.reader OFFSET 0) AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = watch.reader AND m.muted_id = i.sender_id  OFFSET 0)) AND (i.repost_of_id IS NULL OR NOT EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = watch.reader AND f.followee_id = i.sender_id AND NOT f.reposts OFFSET 0)))) AND ((i.sender_id = watch.reader OR s.is_active AND (NOT (i.visibility = 'mutuals') OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = i.sender_id AND f.followee_id = watch.reader  OFFSET 0))) AND
    (i.repost_of_id IS NULL OR EXISTS (
        SELECT FROM items_item o JOIN accounts_user os ON os.id = o.sender_id
        WHERE o.id = i.repost_of_id AND o.status = 'published' AND
    (
    ((o.sender_id = watch.reader AND o.status <> 'deleted') OR (
        o.status = 'published' AND os.is_active
        AND (o.visibility = 'public' OR (o.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = watch.reader AND f.followee_id = o.sender_id  OFFSET 0)
            AND (o.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = o.sender_id AND f.followee_id = watch.reader  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = watch.reader AND b.blocked_id = o.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = o.sender_id AND b.blocked_id = watch.reader OFFSET 0))))
     AND (o.root_id IS NULL OR o.sender_id = watch.reader OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = o.root_id AND
    ((root.sender_id = watch.reader AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = watch.reader AND f.followee_id = root.sender_id  OFFSET 0)
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = watch.reader  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = watch.reader AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = watch.reader OFFSET 0))))
     OFFSET 0)))
     AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = watch.reader AND m.muted_id = o.sender_id  OFFSET 0)
        OFFSET 0))
    )
