    SELECT i.id, i.repost_of_id, row_number() OVER (ORDER BY i.id DESC) AS place, why.by_sender,
    CASE WHEN NOT why.by_sender THEN sender.is_active AND b.id IS NULL AND c.id IS NULL AND m.id IS NULL AND
    i.sender_id NOT IN (
        SELECT out.member_id FROM relations_listmember out JOIN relations_list l ON l.id = out.list_id
        WHERE l.owner_id = $1 AND l.is_exclusive)
    ELSE (
        said.id IS NULL
        OR said.status = 'published' AND am.id IS NULL AND (
            said.sender_id = $1
            OR author.is_active AND ab.id IS NULL AND ac.id IS NULL AND (
                said.visibility = 'public'
                OR said.visibility = 'followers' AND af.id IS NOT NULL
                OR said.visibility = 'mutuals' AND af.id IS NOT NULL AND aback.id IS NOT NULL))
    )
    AND (
        top.id IS NULL
        OR said.sender_id = $1
        OR top.sender_id = $1 AND top.status <> 'deleted'
        OR top.status = 'published' AND starter.is_active AND tb.id IS NULL AND tc.id IS NULL AND (
            top.visibility = 'public'
            OR top.visibility = 'followers' AND tf.id IS NOT NULL
            OR top.visibility = 'mutuals' AND tf.id IS NOT NULL AND tback.id IS NOT NULL)
    ) END AS is_shown
    FROM items_item i JOIN accounts_user sender ON sender.id = i.sender_id
    LEFT JOIN relations_follow f ON f.follower_id = $1 AND f.followee_id = i.sender_id
    LEFT JOIN relations_follow back ON back.follower_id = i.sender_id AND back.followee_id = $1
    LEFT JOIN relations_block b ON b.blocker_id = $1 AND b.blocked_id = i.sender_id
    LEFT JOIN relations_block c ON c.blocker_id = i.sender_id AND c.blocked_id = $1
    LEFT JOIN relations_mute m ON m.muter_id = $1 AND m.muted_id = i.sender_id
    LEFT JOIN items_item said ON said.id = i.repost_of_id
    LEFT JOIN accounts_user author ON author.id = said.sender_id
    LEFT JOIN relations_follow af ON af.follower_id = $1 AND af.followee_id = said.sender_id
    LEFT JOIN relations_follow aback ON aback.follower_id = said.sender_id AND aback.followee_id = $1
    LEFT JOIN relations_block ab ON ab.blocker_id = $1 AND ab.blocked_id = said.sender_id
    LEFT JOIN relations_block ac ON ac.blocker_id = said.sender_id AND ac.blocked_id = $1
    LEFT JOIN relations_mute am ON am.muter_id = $1 AND am.muted_id = said.sender_id
    LEFT JOIN items_item top ON top.id = said.root_id
    LEFT JOIN accounts_user starter ON starter.id = top.sender_id
    LEFT JOIN relations_follow tf ON tf.follower_id = $1 AND tf.followee_id = top.sender_id
    LEFT JOIN relations_follow tback ON tback.follower_id = top.sender_id AND tback.followee_id = $1
    LEFT JOIN relations_block tb ON tb.blocker_id = $1 AND tb.blocked_id = top.sender_id
    LEFT JOIN relations_block tc ON tc.blocker_id = top.sender_id AND tc.blocked_id = $1
    CROSS JOIN LATERAL (
        SELECT (
            i.sender_id = $1
            OR f.id IS NOT NULL AND b.id IS NULL AND c.id IS NULL AND m.id IS NULL AND sender.is_active
                AND (i.repost_of_id IS NULL OR f.reposts)
                AND (i.visibility IN ('public', 'followers') OR i.visibility = 'mutuals' AND back.id IS NOT NULL)
        ) AND
    i.sender_id NOT IN (
        SELECT out.member_id FROM relations_listmember out JOIN relations_list l ON l.id = out.list_id
        WHERE l.owner_id = $1 AND l.is_exclusive)
 AS by_sender
    ) why
    WHERE i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility <> 'mentioned' AND i.id > $2
        AND (why.by_sender OR
    i.visibility = 'public' AND i.repost_of_id IS NULL AND EXISTS (
        SELECT FROM relations_tagfollow wanted JOIN relations_tag named ON named.id = wanted.tag_id
        JOIN items_itemtag carried ON carried.tag = named.name
        WHERE wanted.user_id = $1 AND carried.item_id = i.id)
)
