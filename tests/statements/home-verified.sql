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
            coalesce(sum(n.replies) + CASE WHEN coalesce(o.visibility, i.visibility) = 'public' THEN 0 ELSE sum(n.circle_replies) END, 0),
            coalesce(sum(n.reposts), 0), coalesce(sum(n.quotes), 0)
        ]::int[] FROM (
            SELECT likes, replies, circle_replies, reposts, quotes FROM items_itemcounts WHERE item_id = coalesce(o.id, i.id)
            UNION ALL
            SELECT likes, replies, circle_replies, reposts, quotes FROM items_countchange WHERE item_id = coalesce(o.id, i.id)
        ) n)
    ,
    EXISTS (SELECT FROM items_like l WHERE l.user_id = $1 AND l.item_id = coalesce(o.id, i.id) OFFSET 0),
    EXISTS (SELECT FROM items_item r
        WHERE r.repost_of_id = coalesce(o.id, i.id) AND r.sender_id = $1 AND r.status = 'published' OFFSET 0),
    EXISTS (SELECT FROM items_bookmark m WHERE m.user_id = $1 AND m.item_id = coalesce(o.id, i.id) OFFSET 0)
    ,
    o.id, o.type, o.title, o.content::text, o.extra_info::text, o.media::text,
    o.visibility, o.status, o.created_at, o.modified_at, o.reply_to_id, o.repost_of_id,
    o.quote_of_id, o.quotable_by,
    CASE WHEN o.root_id IS NULL THEN o.repliable_by
        ELSE (SELECT t.repliable_by FROM items_item t WHERE t.id = o.root_id) END,
    o.is_continued,
    (SELECT c.facts::text FROM items_linkcard c WHERE c.id = o.link_card_id),
    os.id, os.username, os.display_name, os.is_big_v, os.avatar::text
, i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility <> 'mentioned' AND (i.visibility <> 'self' OR i.sender_id = $1) AND (i.sender_id = $1 OR (EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = $1 AND f.followee_id = i.sender_id  OFFSET 0) AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $1 AND b.blocked_id = i.sender_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = i.sender_id AND b.blocked_id = $1 OFFSET 0) AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = $1 AND m.muted_id = i.sender_id  OFFSET 0) AND NOT EXISTS (SELECT FROM relations_listmember lm JOIN relations_list l ON l.id = lm.list_id WHERE lm.owner_id = $1 AND lm.member_id = i.sender_id AND l.is_exclusive OFFSET 0)) AND (i.repost_of_id IS NULL OR NOT EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = $1 AND f.followee_id = i.sender_id AND NOT f.reposts OFFSET 0)))), (i.sender_id = $1 OR s.is_active AND (NOT (i.visibility = 'mutuals') OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = i.sender_id AND f.followee_id = $1  OFFSET 0))),
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
    , i.status = 'published', NULL FROM unnest($2::bigint[]) AS candidate (id)
    JOIN items_item i ON i.id = candidate.id JOIN accounts_user s ON s.id = i.sender_id LEFT JOIN items_item o ON o.id = i.repost_of_id LEFT JOIN accounts_user os ON os.id = o.sender_id
