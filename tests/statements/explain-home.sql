    WITH tags AS MATERIALIZED (
    SELECT g.id, g.name, g.epoch FROM relations_tagfollow h JOIN relations_tag g ON g.id = h.tag_id WHERE h.user_id = $1
    )
    SELECT i.sender_id, s.username, s.is_big_v, i.status, i.visibility, i.repost_of_id, d.item_id IS NOT NULL,
        d.parked_at IS NOT NULL, s.promotion # (SELECT p.generation # 2 FROM accounts_policy p WHERE p.drawn_on = feedsite_timeline()), ARRAY[i.status = 'published', i.reply_to_id IS NULL, i.visibility <> 'mentioned', (i.visibility <> 'self' OR i.sender_id = $1),
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
        OFFSET 0))
    , (NOT
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
        OFFSET 0))
     OR
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
    ), (i.sender_id = $1 OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = $1 AND f.followee_id = i.sender_id  OFFSET 0)), (i.sender_id = $1 OR NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $1 AND b.blocked_id = i.sender_id OFFSET 0)), (i.sender_id = $1 OR NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = $1 OFFSET 0)), (i.sender_id = $1 OR NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = $1 AND m.muted_id = i.sender_id  OFFSET 0)), (i.sender_id = $1 OR NOT EXISTS (SELECT FROM relations_listmember lm JOIN relations_list l ON l.id = lm.list_id WHERE lm.owner_id = $1 AND lm.member_id = i.sender_id AND l.is_exclusive OFFSET 0)), (i.sender_id = $1 OR (i.repost_of_id IS NULL OR NOT EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = $1 AND f.followee_id = i.sender_id AND NOT f.reposts OFFSET 0))), (i.sender_id = $1 OR s.is_active), (i.sender_id = $1 OR (NOT (i.visibility = 'mutuals') OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = i.sender_id AND f.followee_id = $1  OFFSET 0)))],
        (
        SELECT array_agg(t.tag ORDER BY t.tag) FROM items_itemtag t
        WHERE t.item_id = i.id AND t.is_public_post AND (t.tag IN (SELECT name FROM tags)) IS TRUE)
    FROM items_item i JOIN accounts_user s ON s.id = i.sender_id LEFT JOIN timeline_delivery d ON d.item_id = i.id
    WHERE i.id = $2
