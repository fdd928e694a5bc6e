    WITH answered AS MATERIALIZED (
        SELECT sender_id AS id FROM items_item WHERE id IN ($1::bigint, $2::bigint)
    ),
    quoted AS MATERIALIZED (SELECT sender_id AS id FROM items_item WHERE id = $3::bigint),
    addressed AS MATERIALIZED (
    SELECT user_id AS id FROM items_participant WHERE conversation_id = $4 AND NOT is_request
    ),
    told AS (
        INSERT INTO notifications_notification (recipient_id, kind, item_id)
        SELECT m.id, CASE WHEN m.id IN (SELECT id FROM answered) THEN 'reply'
            WHEN m.id IN (SELECT id FROM quoted) THEN 'quote' ELSE 'mention' END, i.id
        FROM addressed JOIN accounts_user m ON m.id = addressed.id, items_item i JOIN accounts_user s ON s.id = i.sender_id LEFT JOIN items_item o ON o.id = i.repost_of_id LEFT JOIN accounts_user os ON os.id = o.sender_id
        WHERE m.id <> $5 AND m.is_active AND i.id = $6 AND ((
    (
    ((i.sender_id = m.id AND i.status <> 'deleted') OR (
        i.status = 'published' AND s.is_active
        AND (i.visibility = 'public' OR (i.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = m.id AND f.followee_id = i.sender_id  OFFSET 0)
            AND (i.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = i.sender_id AND f.followee_id = m.id  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = m.id AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = m.id OFFSET 0))))
     AND (i.root_id IS NULL OR i.sender_id = m.id OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = i.root_id AND
    ((root.sender_id = m.id AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = m.id AND f.followee_id = root.sender_id  OFFSET 0)
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = m.id  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = m.id AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = m.id OFFSET 0))))
     OFFSET 0)))
     AND
    (i.repost_of_id IS NULL OR EXISTS (
        SELECT FROM items_item o JOIN accounts_user os ON os.id = o.sender_id
        WHERE o.id = i.repost_of_id AND o.status = 'published' AND
    (
    ((o.sender_id = m.id AND o.status <> 'deleted') OR (
        o.status = 'published' AND os.is_active
        AND (o.visibility = 'public' OR (o.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = m.id AND f.followee_id = o.sender_id  OFFSET 0)
            AND (o.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = o.sender_id AND f.followee_id = m.id  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = m.id AND b.blocked_id = o.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = o.sender_id AND b.blocked_id = m.id OFFSET 0))))
     AND (o.root_id IS NULL OR o.sender_id = m.id OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = o.root_id AND
    ((root.sender_id = m.id AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = m.id AND f.followee_id = root.sender_id  OFFSET 0)
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = m.id  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = m.id AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = m.id OFFSET 0))))
     OFFSET 0)))
        OFFSET 0))
    ) OR
    (i.visibility = 'mentioned' AND i.status = 'published' AND s.is_active
        AND EXISTS (SELECT FROM items_participant p
            WHERE p.conversation_id = coalesce(i.conversation_id, i.id) AND p.user_id = m.id OFFSET 0)
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = m.id AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = m.id OFFSET 0)))
    )
        ON CONFLICT DO NOTHING RETURNING id, recipient_id, position
    ),
    acts AS (
        INSERT INTO notifications_act (id, notification_id, recipient_id, actor_id)
        SELECT position, id, recipient_id, $5 FROM told
    )
    SELECT recipient_id, position FROM told
