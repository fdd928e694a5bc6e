SELECT "items_item"."id", "items_item"."sender_id", "items_item"."type", "items_item"."title", "items_item"."content", "items_item"."extra_info", "items_item"."media", "items_item"."status", "items_item"."visibility", "items_item"."reply_to_id", "items_item"."repost_of_id", "items_item"."root_id", "items_item"."conversation_id", "items_item"."quote_of_id", "items_item"."is_quote_revoked", "items_item"."quotable_by", "items_item"."link_card_id", "items_item"."published_at", "items_item"."created_at", "items_item"."modified_at" FROM "items_item" WHERE ((EXISTS (SELECT FROM accounts_user s WHERE s.id = items_item.sender_id AND ((
    (
    ((items_item.sender_id = 1000000 AND items_item.status <> 'deleted') OR (
        items_item.status = 'published' AND s.is_active
        AND (items_item.visibility = 'public' OR (items_item.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = 1000000 AND f.followee_id = items_item.sender_id  )
            AND (items_item.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = items_item.sender_id AND f.followee_id = 1000000  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = 1000000 AND b.blocked_id = items_item.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = items_item.sender_id AND b.blocked_id = 1000000 OFFSET 0))))
     AND (items_item.root_id IS NULL OR items_item.sender_id = 1000000 OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = items_item.root_id AND
    ((root.sender_id = 1000000 AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = 1000000 AND f.followee_id = root.sender_id  )
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = 1000000  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = 1000000 AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = 1000000 OFFSET 0))))
     OFFSET 0)))
     AND
    (items_item.repost_of_id IS NULL OR EXISTS (
        SELECT FROM items_item o JOIN accounts_user os ON os.id = o.sender_id
        WHERE o.id = items_item.repost_of_id AND o.status = 'published' AND
    (
    ((o.sender_id = 1000000 AND o.status <> 'deleted') OR (
        o.status = 'published' AND os.is_active
        AND (o.visibility = 'public' OR (o.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = 1000000 AND f.followee_id = o.sender_id  )
            AND (o.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = o.sender_id AND f.followee_id = 1000000  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = 1000000 AND b.blocked_id = o.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = o.sender_id AND b.blocked_id = 1000000 OFFSET 0))))
     AND (o.root_id IS NULL OR o.sender_id = 1000000 OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = o.root_id AND
    ((root.sender_id = 1000000 AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = 1000000 AND f.followee_id = root.sender_id  )
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = 1000000  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = 1000000 AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = 1000000 OFFSET 0))))
     OFFSET 0)))
        OFFSET 0))
    ) OR
    (items_item.visibility = 'mentioned' AND items_item.status = 'published' AND s.is_active
        AND EXISTS (SELECT FROM items_participant p
            WHERE p.conversation_id = coalesce(items_item.conversation_id, items_item.id) AND p.user_id = 1000000 OFFSET 0)
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = 1000000 AND b.blocked_id = items_item.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = items_item.sender_id AND b.blocked_id = 1000000 OFFSET 0)))
    ))) AND "items_item"."id" IN ($1) AND "items_item"."sender_id" = $2)
