    SELECT s.id, a.id, n.id, n.kind, n.recipient_id, n.item_id, n.session_id,
        u.id, u.username, u.display_name, u.is_big_v, u.avatar::text, q.begins, q.ends, q.time_zone
    FROM notifications_act a
    JOIN notifications_notification n ON n.id = a.notification_id
    JOIN accounts_user u ON u.id = a.actor_id
    JOIN accounts_user r ON r.id = n.recipient_id AND r.is_active
    JOIN notifications_pushsubscription s ON s.user_id = n.recipient_id AND n.kind = ANY(s.kinds)
    LEFT JOIN notifications_quiethours q ON q.user_id = n.recipient_id
    WHERE a.id = ANY($1::bigint[]) AND a.id > coalesce((SELECT r.up_to FROM notifications_readmark r WHERE r.user_id = n.recipient_id), 0)
        AND ($2::bigint IS NULL OR s.id = $2)
        AND CASE s.policy
            WHEN 'all' THEN true
            WHEN 'followed' THEN EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = n.recipient_id AND f.followee_id = a.actor_id  OFFSET 0)
            WHEN 'follower' THEN EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = a.actor_id AND f.followee_id = n.recipient_id  OFFSET 0)
            ELSE false
        END
        AND
    CASE WHEN s.token_id IS NULL THEN EXISTS (
        SELECT FROM django_session d WHERE d.session_key = s.session_key AND d.expire_date > now() OFFSET 0)
    ELSE EXISTS (
        SELECT FROM oauth2_provider_accesstoken t WHERE t.id = s.token_id AND t.expires > now() OFFSET 0)
    END
        AND
    (n.item_id IS NULL OR EXISTS (
        SELECT FROM items_item i JOIN accounts_user s ON s.id = i.sender_id LEFT JOIN items_item o ON o.id = i.repost_of_id LEFT JOIN accounts_user os ON os.id = o.sender_id WHERE i.id = n.item_id AND ((
    (
    ((i.sender_id = n.recipient_id AND i.status <> 'deleted') OR (
        i.status = 'published' AND s.is_active
        AND (i.visibility = 'public' OR (i.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = n.recipient_id AND f.followee_id = i.sender_id  OFFSET 0)
            AND (i.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = i.sender_id AND f.followee_id = n.recipient_id  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = n.recipient_id AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = n.recipient_id OFFSET 0))))
     AND (i.root_id IS NULL OR i.sender_id = n.recipient_id OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = i.root_id AND
    ((root.sender_id = n.recipient_id AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = n.recipient_id AND f.followee_id = root.sender_id  OFFSET 0)
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = n.recipient_id  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = n.recipient_id AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = n.recipient_id OFFSET 0))))
     OFFSET 0)))
     AND
    (i.repost_of_id IS NULL OR EXISTS (
        SELECT FROM items_item o JOIN accounts_user os ON os.id = o.sender_id
        WHERE o.id = i.repost_of_id AND o.status = 'published' AND
    (
    ((o.sender_id = n.recipient_id AND o.status <> 'deleted') OR (
        o.status = 'published' AND os.is_active
        AND (o.visibility = 'public' OR (o.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = n.recipient_id AND f.followee_id = o.sender_id  OFFSET 0)
            AND (o.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = o.sender_id AND f.followee_id = n.recipient_id  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = n.recipient_id AND b.blocked_id = o.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = o.sender_id AND b.blocked_id = n.recipient_id OFFSET 0))))
     AND (o.root_id IS NULL OR o.sender_id = n.recipient_id OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = o.root_id AND
    ((root.sender_id = n.recipient_id AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = n.recipient_id AND f.followee_id = root.sender_id  OFFSET 0)
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = n.recipient_id  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = n.recipient_id AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = n.recipient_id OFFSET 0))))
     OFFSET 0)))
        OFFSET 0))
    ) OR
    (i.visibility = 'mentioned' AND i.status = 'published' AND s.is_active
        AND EXISTS (SELECT FROM items_participant p
            WHERE p.conversation_id = coalesce(i.conversation_id, i.id) AND p.user_id = n.recipient_id OFFSET 0)
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = n.recipient_id AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = n.recipient_id OFFSET 0)))
    ) AND (n.kind IN ('warning', 'picture', 'scheduled') OR NOT EXISTS (
        SELECT FROM items_mutedthread muted
        WHERE muted.user_id = n.recipient_id AND muted.root_id = coalesce(i.root_id, i.id) OFFSET 0)) OFFSET 0))
    AND CASE WHEN n.kind = 'live' THEN EXISTS (SELECT FROM live_livesession l JOIN accounts_user h ON h.id = l.host_id WHERE l.id = n.session_id AND (l.host_id = n.recipient_id OR (l.hidden_at IS NULL AND h.is_active AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = n.recipient_id AND b.blocked_id = l.host_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = l.host_id AND b.blocked_id = n.recipient_id OFFSET 0)))) OFFSET 0) ELSE true END
    AND n.kind <> ALL (coalesce((SELECT s.kinds FROM notifications_silenced s WHERE s.user_id = n.recipient_id), ARRAY[]::varchar[]))
     AND
    u.is_active AND ((NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = n.recipient_id AND b.blocked_id = a.actor_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = a.actor_id AND b.blocked_id = n.recipient_id OFFSET 0)) AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = n.recipient_id AND m.muted_id = a.actor_id AND m.notifications OFFSET 0))
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
