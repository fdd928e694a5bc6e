    WITH scanned AS MATERIALIZED (
        SELECT n.* FROM notifications_notification n
        WHERE n.recipient_id = $1 AND n.position < $2 AND true
        ORDER BY n.position DESC LIMIT $3
    ),
    bound AS (SELECT CASE WHEN count(*) = $3 THEN min(position) END AS position FROM scanned)
    SELECT bound.position, page.* FROM bound LEFT JOIN LATERAL (
        SELECT n.position, n.kind, n.item_id, n.session_id, n.text, n.detail, n.subject_id,
            shown.newest, shown.count, shown.actors,
            shown.newest > coalesce((SELECT r.up_to FROM notifications_readmark r WHERE r.user_id = $1), 0),
            CASE WHEN shown.count > 100 THEN true ELSE EXISTS (
                SELECT FROM notifications_act act WHERE act.notification_id = n.id
                ORDER BY act.id DESC OFFSET 300 LIMIT 1) END
        FROM scanned n CROSS JOIN LATERAL (
            SELECT max(act.id), count(*),
                json_agg(json_build_array(act.actor_id::text, act.username, act.display_name, act.is_big_v,
                    act.avatar)
                    ORDER BY act.id DESC) FILTER (WHERE act.place <= 3)
            FROM (
                SELECT a.id, a.actor_id, u.username, u.display_name, u.is_big_v, u.avatar,
                    row_number() OVER (ORDER BY a.id DESC) AS place
                FROM
    (SELECT * FROM notifications_act act WHERE act.notification_id = n.id ORDER BY act.id DESC LIMIT 300)
 a JOIN accounts_user u ON u.id = a.actor_id WHERE
    u.is_active AND ((NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $1 AND b.blocked_id = a.actor_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = a.actor_id AND b.blocked_id = $1 OFFSET 0)) AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = $1 AND m.muted_id = a.actor_id AND m.notifications OFFSET 0))
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
                ORDER BY a.id DESC LIMIT 101
            ) act
        ) shown (newest, count, actors)
        WHERE NOT
    (n.kind IN ('mention', 'reply')
        AND EXISTS (SELECT FROM items_item m WHERE m.id = n.item_id AND m.visibility = 'mentioned' OFFSET 0))
 AND
    (n.item_id IS NULL OR EXISTS (
        SELECT FROM items_item i JOIN accounts_user s ON s.id = i.sender_id LEFT JOIN items_item o ON o.id = i.repost_of_id LEFT JOIN accounts_user os ON os.id = o.sender_id WHERE i.id = n.item_id AND ((
    (
    ((i.sender_id = $1 AND i.status <> 'deleted') OR (
        i.status = 'published' AND s.is_active
        AND (i.visibility = 'public' OR (i.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = $1 AND f.followee_id = i.sender_id  )
            AND (i.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = i.sender_id AND f.followee_id = $1  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $1 AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = $1 OFFSET 0))))
     AND (i.root_id IS NULL OR i.sender_id = $1 OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = i.root_id AND
    ((root.sender_id = $1 AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = $1 AND f.followee_id = root.sender_id  )
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = $1  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $1 AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = $1 OFFSET 0))))
     OFFSET 0)))
     AND
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
    ) OR
    (i.visibility = 'mentioned' AND i.status = 'published' AND s.is_active
        AND EXISTS (SELECT FROM items_participant p
            WHERE p.conversation_id = coalesce(i.conversation_id, i.id) AND p.user_id = $1 OFFSET 0)
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $1 AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = $1 OFFSET 0)))
    ) AND (n.kind IN ('warning', 'picture', 'scheduled', 'report', 'case') OR NOT EXISTS (
        SELECT FROM items_mutedthread muted
        WHERE muted.user_id = $1 AND muted.root_id = coalesce(i.root_id, i.id) OFFSET 0)) OFFSET 0))
    AND CASE WHEN n.kind = 'live' THEN EXISTS (SELECT FROM live_livesession l JOIN accounts_user h ON h.id = l.host_id WHERE l.id = n.session_id AND (l.host_id = $1 OR (l.hidden_at IS NULL AND h.is_active AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $1 AND b.blocked_id = l.host_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = l.host_id AND b.blocked_id = $1 OFFSET 0)))) OFFSET 0) ELSE true END
    AND n.kind <> ALL (coalesce((SELECT s.kinds FROM notifications_silenced s WHERE s.user_id = $1), ARRAY[]::varchar[]))
     AND shown.count > 0
        ORDER BY position DESC LIMIT $4
    ) page ON true
