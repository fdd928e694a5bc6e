    WITH asked AS MATERIALIZED (
        SELECT $1::bigint[] AS ids, $2::bigint[] AS senders
    ), unwanted AS MATERIALIZED (
        SELECT newest.item_id, i.sender_id FROM (
            SELECT item_id FROM discover_notinterested WHERE user_id = $3 ORDER BY id DESC LIMIT 200
        ) newest CROSS JOIN LATERAL (
            SELECT sender_id FROM items_item WHERE id = newest.item_id AND status = 'published' OFFSET 0
        ) i
    ), unwanted_tags AS MATERIALIZED (
        SELECT t.tag, count(*) AS times FROM unwanted u JOIN items_itemtag t USING (item_id) GROUP BY t.tag
    ), tags AS MATERIALIZED (
        SELECT tag, item_id FROM items_itemtag
        WHERE item_id = ANY((SELECT ids FROM asked)::bigint[]) AND EXISTS (SELECT FROM unwanted_tags)
    )
    SELECT 'blocked', b.blocked_id, 1::bigint FROM (SELECT blocked_id FROM relations_block WHERE blocker_id = $3 AND blocked_id = ANY((SELECT senders FROM asked)::bigint[])) b
    UNION ALL
    SELECT 'blocked', b.blocker_id, 1 FROM (SELECT blocker_id FROM relations_block WHERE blocked_id = $3 AND blocker_id = ANY((SELECT senders FROM asked)::bigint[])) b
    UNION ALL
    SELECT 'muted', m.muted_id, 1 FROM (SELECT muted_id FROM relations_mute WHERE muter_id = $3 AND muted_id = ANY((SELECT senders FROM asked)::bigint[])) m
    UNION ALL
    SELECT 'not_interested', item_id, 1 FROM discover_notinterested
    WHERE user_id = $3 AND item_id = ANY((SELECT ids FROM asked)::bigint[])
    UNION ALL
    SELECT 'interacted', item_id, 1 FROM items_like
    WHERE user_id = $3 AND item_id = ANY((SELECT ids FROM asked)::bigint[])
    UNION ALL
    SELECT 'interacted', root_id, 1 FROM items_item
    WHERE sender_id = $3 AND root_id = ANY((SELECT ids FROM asked)::bigint[]) AND status <> 'deleted'
    UNION ALL
    SELECT 'interacted', repost_of_id, 1 FROM items_item
    WHERE sender_id = $3 AND repost_of_id = ANY((SELECT ids FROM asked)::bigint[]) AND status = 'published'
    UNION ALL
    SELECT 'issued', issued.pk, 1 FROM discover_issuedpage p
    CROSS JOIN unnest(p.item_ids) AS issued (pk) JOIN unnest((SELECT ids FROM asked)::bigint[]) AS candidate (pk) USING (pk)
    WHERE p.user_id = $3 AND p.issued_at > $4
    UNION ALL
    SELECT 'root', i.root_id, reply.pk FROM unnest($5::bigint[]) AS reply (pk)
    CROSS JOIN LATERAL (SELECT root_id FROM items_item WHERE id = reply.pk OFFSET 0) i WHERE i.root_id IS NOT NULL
    UNION ALL
    SELECT 'unwanted_of', sender_id, count(*) FROM unwanted GROUP BY sender_id
    UNION ALL
    SELECT 'unwanted_tags', t.item_id, sum(u.times)::bigint FROM tags t JOIN unwanted_tags u USING (tag)
    GROUP BY t.item_id
