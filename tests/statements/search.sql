    SELECT item.* FROM (SELECT id FROM unnest($1::bigint[]) AS id ORDER BY id DESC OFFSET 0) candidate
    CROSS JOIN LATERAL (
        SELECT
    i.id, i.type, i.title, i.content::text, i.extra_info::text, i.media::text,
    i.visibility, i.status, i.created_at, i.modified_at, i.reply_to_id, i.repost_of_id,
    i.quote_of_id, i.quotable_by,
    CASE WHEN i.root_id IS NULL THEN i.repliable_by
        ELSE (SELECT t.repliable_by FROM items_item t WHERE t.id = i.root_id) END,
    i.is_continued,
    (SELECT c.facts::text FROM items_linkcard c WHERE c.id = i.link_card_id),
    s.id, s.username, s.display_name, s.is_big_v, s.avatar::text
    ,
    (
        SELECT ARRAY[
            coalesce(sum(n.likes), 0),
            coalesce(sum(n.replies) + CASE WHEN i.visibility = 'public' THEN 0 ELSE sum(n.circle_replies) END, 0),
            coalesce(sum(n.reposts), 0), coalesce(sum(n.quotes), 0)
        ]::int[] FROM (
            SELECT likes, replies, circle_replies, reposts, quotes FROM items_itemcounts WHERE item_id = i.id
            UNION ALL
            SELECT likes, replies, circle_replies, reposts, quotes FROM items_countchange WHERE item_id = i.id
        ) n)
    ,
    EXISTS (SELECT FROM items_like l WHERE l.user_id = $2 AND l.item_id = i.id OFFSET 0),
    EXISTS (SELECT FROM items_item r
        WHERE r.repost_of_id = i.id AND r.sender_id = $2 AND r.status = 'published' OFFSET 0),
    EXISTS (SELECT FROM items_bookmark m WHERE m.user_id = $2 AND m.item_id = i.id OFFSET 0)
     FROM items_item i JOIN accounts_user s ON s.id = i.sender_id
        WHERE i.id = candidate.id AND i.repost_of_id IS NULL AND i.visibility <> 'mentioned' AND
    (
    ((i.sender_id = $2 AND i.status <> 'deleted') OR (
        i.status = 'published' AND s.is_active
        AND (i.visibility = 'public' OR (i.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = $2 AND f.followee_id = i.sender_id  )
            AND (i.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = i.sender_id AND f.followee_id = $2  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $2 AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = $2 OFFSET 0))))
     AND (i.root_id IS NULL OR i.sender_id = $2 OR EXISTS (
        SELECT FROM items_item root JOIN accounts_user rs ON rs.id = root.sender_id
        WHERE root.id = i.root_id AND
    ((root.sender_id = $2 AND root.status <> 'deleted') OR (
        root.status = 'published' AND rs.is_active
        AND (root.visibility = 'public' OR (root.visibility IN ('followers', 'mutuals')
            AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = $2 AND f.followee_id = root.sender_id  )
            AND (root.visibility = 'followers' OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = root.sender_id AND f.followee_id = $2  OFFSET 0))))
        AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $2 AND b.blocked_id = root.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = root.sender_id AND b.blocked_id = $2 OFFSET 0))))
     OFFSET 0)))
     OFFSET 0
    ) item ORDER BY candidate.id DESC LIMIT $3
