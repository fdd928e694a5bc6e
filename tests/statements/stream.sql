    WITH
    i AS MATERIALIZED (
        SELECT event.place, event.before IS NOT NULL AS before, stated.*
        FROM unnest($1::int[], $2::bigint[], $3::text[]) AS event (place, item, before)
        JOIN items_item stored ON stored.id = event.item
        CROSS JOIN LATERAL jsonb_populate_record(stored, CASE WHEN event.before IS NULL THEN '{}'
            ELSE jsonb_build_object('status', 'published', 'visibility', event.before) END) AS stated
    )
, connected AS MATERIALIZED (
        SELECT reader, reader AS sender_id FROM unnest($4::bigint[]) AS one (reader)
        UNION ALL SELECT one.reader, followed.sender_id FROM unnest($4::bigint[]) AS one (reader)
        CROSS JOIN LATERAL (
            SELECT followee_id AS sender_id FROM relations_follow WHERE follower_id = one.reader
            AND (followee_id IN (SELECT sender_id FROM i)) IS TRUE OFFSET 0
        ) followed
    ), tagged AS MATERIALIZED (
        SELECT i.place, i.before, i.sender_id, tag.id AS tag_id
        FROM i JOIN accounts_user s ON s.id = i.sender_id AND s.is_active JOIN items_itemtag t ON t.item_id = i.id
        CROSS JOIN LATERAL (SELECT g.id FROM relations_tag g WHERE g.name = t.tag) tag WHERE i.status = 'published' AND i.visibility = 'public' AND i.reply_to_id IS NULL AND i.repost_of_id IS NULL
    ), followed AS MATERIALIZED (
        SELECT one.reader, tag.id FROM unnest($4::bigint[]) AS one (reader)
        CROSS JOIN LATERAL (
            SELECT h.tag_id AS id FROM relations_tagfollow h WHERE h.user_id = one.reader AND (h.tag_id IN (SELECT tag_id FROM tagged)) IS TRUE OFFSET 0
        ) tag WHERE EXISTS (SELECT FROM tagged)
    ), about AS MATERIALIZED (
        SELECT id AS item FROM i UNION SELECT reply_to_id FROM i UNION SELECT root_id FROM i
        UNION SELECT conversation_id FROM i
    )
    SELECT i.place, i.before, connected.reader, 0::bigint, i.reply_to_id,
        NOT EXISTS (SELECT FROM relations_listmember lm JOIN relations_list l ON l.id = lm.list_id WHERE lm.owner_id = connected.reader AND lm.member_id = i.sender_id AND l.is_exclusive OFFSET 0)
    FROM i JOIN accounts_user s ON s.id = i.sender_id JOIN connected ON connected.sender_id = i.sender_id
    WHERE i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility <> 'mentioned' AND (i.visibility <> 'self' OR i.sender_id = connected.reader) AND (i.sender_id = connected.reader OR (EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = connected.reader AND f.followee_id = i.sender_id  OFFSET 0) AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = connected.reader AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = connected.reader OFFSET 0) AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = connected.reader AND m.muted_id = i.sender_id  OFFSET 0)) AND (i.repost_of_id IS NULL OR NOT EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = connected.reader AND f.followee_id = i.sender_id AND NOT f.reposts OFFSET 0)))) AND ((i.sender_id = connected.reader OR s.is_active AND (NOT (i.visibility = 'mutuals') OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = i.sender_id AND f.followee_id = connected.reader  OFFSET 0))) AND
    (i.repost_of_id IS NULL OR EXISTS (
        SELECT FROM items_item o JOIN accounts_user os ON os.id = o.sender_id
        WHERE o.id = i.repost_of_id AND o.status = 'published' AND
    (
    ((o.sender_id = connected.reader AND o.status <> 'deleted') OR (
        o.status = 'published' AND os.is_active
        AND (o.visibility = 'public' OR (o.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = connected.reader AND f.followee_id = o.sender_id  OFFSET 0)
            AND (o.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = o.sender_id AND f.followee_id = connected.reader  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = connected.reader AND b.blocked_id = o.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = o.sender_id AND b.blocked_id = connected.reader OFFSET 0))))
     AND (o.root_id IS NULL OR o.sender_id = connected.reader OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = o.root_id AND
    ((root.sender_id = connected.reader AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = connected.reader AND f.followee_id = root.sender_id  OFFSET 0)
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = connected.reader  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = connected.reader AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = connected.reader OFFSET 0))))
     OFFSET 0)))
     AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = connected.reader AND m.muted_id = o.sender_id  OFFSET 0)
        OFFSET 0))
    )
    UNION ALL
    SELECT DISTINCT tagged.place, tagged.before, followed.reader, 0::bigint, NULL::bigint, true
    FROM followed JOIN tagged ON tagged.tag_id = followed.id
    WHERE (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = followed.reader AND b.blocked_id = tagged.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = tagged.sender_id AND b.blocked_id = followed.reader OFFSET 0) AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = followed.reader AND m.muted_id = tagged.sender_id  OFFSET 0) AND NOT EXISTS (SELECT FROM relations_listmember lm JOIN relations_list l ON l.id = lm.list_id WHERE lm.owner_id = followed.reader AND lm.member_id = tagged.sender_id AND l.is_exclusive OFFSET 0))
    UNION ALL
    SELECT i.place, i.before, watch.reader, watch.item, i.reply_to_id, true
    FROM (
        SELECT * FROM unnest($5::bigint[], $6::bigint[]) AS one (reader, item)
        WHERE (one.item IN (SELECT item FROM about)) IS TRUE
    ) watch
    JOIN i ON watch.item IN (i.id, i.reply_to_id, i.root_id, i.conversation_id)
    JOIN accounts_user s ON s.id = i.sender_id
    WHERE ((
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
