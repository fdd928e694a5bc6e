    WITH pending AS MATERIALIZED (
    SELECT count(*) AS seen, min(item_id) AS lowest,
        (array_agg(item_id ORDER BY item_id DESC) FILTER (WHERE sender_id IS NOT NULL))[:$1] AS ids,
        (array_agg(sender_id ORDER BY item_id DESC) FILTER (WHERE sender_id IS NOT NULL))[:$1] AS senders
    FROM (
        SELECT d.item_id, CASE
            WHEN d.sender_id = $2 OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = $2 AND f.followee_id = d.sender_id  OFFSET 0) THEN d.sender_id
        END AS sender_id
        FROM (
            SELECT item_id, sender_id FROM timeline_delivery WHERE item_id < $3
            ORDER BY item_id DESC LIMIT $4
        ) d OFFSET 0
    ) scanned
),
    wanted AS MATERIALIZED (
    SELECT one.id, EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = $2 AND f.followee_id = one.id  OFFSET 0) AS is_followed
    FROM unnest(($5::bigint[] || (SELECT senders FROM pending))) AS one (id) WHERE (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $2 AND b.blocked_id = one.id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = one.id AND b.blocked_id = $2 OFFSET 0) AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = $2 AND m.muted_id = one.id  OFFSET 0) AND NOT EXISTS (SELECT FROM relations_listmember lm JOIN relations_list l ON l.id = lm.list_id WHERE lm.owner_id = $2 AND lm.member_id = one.id AND l.is_exclusive OFFSET 0))
    )
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
    ,
    i.status = 'published' AND i.reply_to_id IS NULL AND i.visibility <> 'mentioned' AND (i.visibility <> 'self' OR i.sender_id = $2) AND i.sender_id = ANY (ARRAY(SELECT $2::bigint UNION ALL SELECT wanted.id FROM wanted WHERE wanted.is_followed))
        AND (i.repost_of_id IS NULL OR i.sender_id <> ALL (ARRAY(SELECT one.id FROM unnest(($5::bigint[] || (SELECT senders FROM pending))) AS one (id) WHERE EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = $2 AND f.followee_id = one.id AND NOT f.reposts OFFSET 0))))
    , (i.sender_id = $2 OR s.is_active AND (NOT (i.visibility = 'mutuals') OR EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = i.sender_id AND f.followee_id = $2  OFFSET 0))), CASE WHEN i.repost_of_id IS NULL THEN true END, i.status = 'published', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    FROM items_item i JOIN accounts_user s ON s.id = i.sender_id WHERE i.id = ANY (($6::bigint[] || (SELECT ids FROM pending)))
    UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, about.* FROM (
    SELECT reader.level, reader.has_inbox, reader.epoch, reader.push_generation, reader.push_level, reader.inbox_from,
        CASE WHEN reader.push_generation = 0 OR reader.push_generation <> $7 THEN ARRAY(
            SELECT ARRAY[v.id, reader.generation # v.promotion] FROM accounts_user v WHERE v.is_big_v AND EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = $2 AND f.followee_id = v.id  )
        ) END,
    greatest(
        CASE WHEN pending.seen = $4 THEN pending.lowest - 1 END,
        CASE WHEN cardinality(pending.ids) = $1 THEN pending.ids[$1] - 1 END,
        0)
, pending.ids, (SELECT max(id) FROM items_item), (SELECT last_value FROM timeline_completions), pg_backend_pid()
    FROM (
        SELECT u.level, (u.level > 0 AND u.following_count >= p.inbox_from) AS has_inbox, u.window_epoch # p.generation AS epoch,
            CASE WHEN u.level >= p.push_level THEN u.push_generation ELSE 0 END AS push_generation, p.generation, p.push_level, p.inbox_from
        FROM accounts_user u LEFT JOIN (
    SELECT p.push_level, p.inbox_from,
        CASE WHEN p.drawn_on = feedsite_timeline() THEN p.generation # 2 END AS generation
    FROM accounts_policy p OFFSET 0)
 p ON true WHERE u.id = $2 OFFSET 0
    ) reader CROSS JOIN pending
) about
