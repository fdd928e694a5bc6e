SELECT reader.id, (
    SELECT count(*) FROM (
        SELECT FROM (
            SELECT n.id, n.kind, n.item_id, n.session_id, n.day, n.recipient_id FROM notifications_notification n
            WHERE n.recipient_id = reader.id AND n.position > coalesce((SELECT r.up_to FROM notifications_readmark r WHERE r.user_id = reader.id), 0) - $1
            ORDER BY n.position DESC LIMIT 1000
        ) n
        CROSS JOIN LATERAL (
            SELECT FROM
    (SELECT * FROM notifications_act act WHERE act.notification_id = n.id ORDER BY act.id DESC LIMIT 300)
 a JOIN accounts_user u ON u.id = a.actor_id
            WHERE a.id > coalesce((SELECT r.up_to FROM notifications_readmark r WHERE r.user_id = reader.id), 0) AND
    u.is_active AND ((NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = reader.id AND b.blocked_id = a.actor_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = a.actor_id AND b.blocked_id = reader.id OFFSET 0)) AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = reader.id AND m.muted_id = a.actor_id AND m.notifications OFFSET 0))
    AND CASE n.kind
        WHEN 'like' THEN EXISTS (
            SELECT FROM items_like l WHERE l.user_id = a.actor_id AND l.item_id = n.item_id OFFSET 0)
        WHEN 'repost' THEN EXISTS (
            SELECT FROM items_item r JOIN items_item o ON o.id = r.repost_of_id
            WHERE r.repost_of_id = n.item_id AND r.sender_id = a.actor_id AND r.status = 'published'
                AND o.status = 'published' OFFSET 0)
        WHEN 'follow' THEN EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = a.actor_id AND f.followee_id = n.recipient_id AND (f.created_at AT TIME ZONE 'UTC')::date = n.day OFFSET 0)
        WHEN 'follow_request' THEN EXISTS (SELECT FROM relations_followrequest f WHERE f.follower_id = a.actor_id AND f.followee_id = n.recipient_id AND (f.created_at AT TIME ZONE 'UTC')::date = n.day OFFSET 0)
        WHEN 'follow_accepted' THEN EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = n.recipient_id AND f.followee_id = a.actor_id AND (f.created_at AT TIME ZONE 'UTC')::date = n.day OFFSET 0)
        ELSE true
    END
     LIMIT 1
        ) act
        WHERE NOT
    (n.kind IN ('mention', 'reply')
        AND EXISTS (SELECT FROM items_item m WHERE m.id = n.item_id AND m.visibility = 'mentioned' OFFSET 0))
 AND
    (n.item_id IS NULL OR EXISTS (
        SELECT FROM items_item i JOIN accounts_user s ON s.id = i.sender_id LEFT JOIN items_item o ON o.id = i.repost_of_id LEFT JOIN accounts_user os ON os.id = o.sender_id WHERE i.id = n.item_id AND ((
    (
    ((i.sender_id = reader.id AND i.status <> 'deleted') OR (
        i.status = 'published' AND s.is_active
        AND (i.visibility = 'public' OR (i.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = reader.id AND f.followee_id = i.sender_id  OFFSET 0)
            AND (i.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = i.sender_id AND f.followee_id = reader.id  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = reader.id AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = reader.id OFFSET 0))))
     AND (i.root_id IS NULL OR i.sender_id = reader.id OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = i.root_id AND
    ((root.sender_id = reader.id AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = reader.id AND f.followee_id = root.sender_id  OFFSET 0)
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = reader.id  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = reader.id AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = reader.id OFFSET 0))))
     OFFSET 0)))
     AND
    (i.repost_of_id IS NULL OR EXISTS (
        SELECT FROM items_item o JOIN accounts_user os ON os.id = o.sender_id
        WHERE o.id = i.repost_of_id AND o.status = 'published' AND
    (
    ((o.sender_id = reader.id AND o.status <> 'deleted') OR (
        o.status = 'published' AND os.is_active
        AND (o.visibility = 'public' OR (o.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = reader.id AND f.followee_id = o.sender_id  OFFSET 0)
            AND (o.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = o.sender_id AND f.followee_id = reader.id  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = reader.id AND b.blocked_id = o.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = o.sender_id AND b.blocked_id = reader.id OFFSET 0))))
     AND (o.root_id IS NULL OR o.sender_id = reader.id OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = o.root_id AND
    ((root.sender_id = reader.id AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = reader.id AND f.followee_id = root.sender_id  OFFSET 0)
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = reader.id  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = reader.id AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = reader.id OFFSET 0))))
     OFFSET 0)))
        OFFSET 0))
    ) OR
    (i.visibility = 'mentioned' AND i.status = 'published' AND s.is_active
        AND EXISTS (SELECT FROM items_participant p
            WHERE p.conversation_id = coalesce(i.conversation_id, i.id) AND p.user_id = reader.id OFFSET 0)
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = reader.id AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = reader.id OFFSET 0)))
    ) AND (n.kind IN ('warning', 'picture', 'scheduled', 'report', 'case') OR NOT EXISTS (
        SELECT FROM items_mutedthread muted
        WHERE muted.user_id = reader.id AND muted.root_id = coalesce(i.root_id, i.id) OFFSET 0)) OFFSET 0))
    AND CASE WHEN n.kind = 'live' THEN EXISTS (SELECT FROM live_livesession l JOIN accounts_user h ON h.id = l.host_id WHERE l.id = n.session_id AND (l.host_id = reader.id OR (l.hidden_at IS NULL AND h.is_active AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = reader.id AND b.blocked_id = l.host_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = l.host_id AND b.blocked_id = reader.id OFFSET 0)))) OFFSET 0) ELSE true END
    AND n.kind <> ALL (coalesce((SELECT s.kinds FROM notifications_silenced s WHERE s.user_id = reader.id), ARRAY[]::varchar[]))
     LIMIT 100
    ) entry
    ), (
    SELECT count(*) FROM (
        SELECT FROM (
            SELECT p.conversation_id, p.read FROM items_participant p
            WHERE p.user_id = reader.id AND NOT p.is_request AND p.last > p.read ORDER BY p.last DESC LIMIT 200
        ) p WHERE EXISTS (
            SELECT FROM (
                (SELECT id FROM items_item WHERE conversation_id = p.conversation_id ORDER BY id DESC LIMIT 20)
                UNION ALL SELECT p.conversation_id
            ) message CROSS JOIN LATERAL (
                SELECT FROM items_item i JOIN accounts_user s ON s.id = i.sender_id
                WHERE i.id = message.id AND
    (i.visibility = 'mentioned' AND i.status = 'published' AND s.is_active
        AND EXISTS (SELECT FROM items_participant p
            WHERE p.conversation_id = coalesce(i.conversation_id, i.id) AND p.user_id = reader.id OFFSET 0)
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = reader.id AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = reader.id OFFSET 0)))
     AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = reader.id AND m.muted_id = i.sender_id  OFFSET 0) OFFSET 0
            ) visible WHERE message.id > p.read
        ) LIMIT 99
    ) waiting
    ), (
    SELECT count(*) FROM (
        SELECT FROM (
            SELECT p.conversation_id, p.read FROM items_participant p
            WHERE p.user_id = reader.id AND p.is_request AND p.last IS NOT NULL ORDER BY p.last DESC LIMIT 200
        ) p WHERE EXISTS (
            SELECT FROM (
                (SELECT id FROM items_item WHERE conversation_id = p.conversation_id ORDER BY id DESC LIMIT 20)
                UNION ALL SELECT p.conversation_id
            ) message CROSS JOIN LATERAL (
                SELECT FROM items_item i JOIN accounts_user s ON s.id = i.sender_id
                WHERE i.id = message.id AND
    (i.visibility = 'mentioned' AND i.status = 'published' AND s.is_active
        AND EXISTS (SELECT FROM items_participant p
            WHERE p.conversation_id = coalesce(i.conversation_id, i.id) AND p.user_id = reader.id OFFSET 0)
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = reader.id AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = reader.id OFFSET 0)))
     AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = reader.id AND m.muted_id = i.sender_id  OFFSET 0) OFFSET 0
            ) visible WHERE true
        ) LIMIT 99
    ) waiting
    ) FROM unnest($2::bigint[]) AS reader (id)
