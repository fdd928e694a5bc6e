    UPDATE timeline_delivery d SET attempts = d.attempts + 1,
        sweep_at = now() + $1::interval * 2 ^ least(d.attempts, 10)
    FROM items_item i, accounts_user s CROSS JOIN LATERAL (
    WITH part AS MATERIALIZED (
        SELECT ARRAY(
            SELECT f.follower_id FROM relations_follow f
            WHERE (NOT s.is_big_v AND s.follower_count <= $2 AND i.status = 'published' AND i.visibility <> 'self') AND f.followee_id = s.id AND f.follower_id > 0 AND f.follower_id <= 9007199254740992
            ORDER BY f.follower_id LIMIT 2000) AS ids
    )
    SELECT (SELECT cardinality(ids) FROM part) AS seen, (SELECT ids[cardinality(ids)] FROM part) AS last,
        array_agg(u.id ORDER BY u.id) AS ids, array_agg(u.level ORDER BY u.id) AS levels
    FROM accounts_user u WHERE (NOT s.is_big_v AND s.follower_count <= $2 AND i.status = 'published' AND i.visibility <> 'self') AND u.id = ANY((SELECT ids || s.id FROM part)::bigint[]) AND (u.level > 0 AND u.following_count >= (SELECT p.inbox_from FROM accounts_policy p))
    ) first
    WHERE d.item_id = $3 AND d.parked_at IS NULL AND d.not_before <= now() AND (SELECT set_config('synchronous_commit', 'off', true) = 'off')
        AND i.id = d.item_id AND s.id = d.sender_id
        AND d.revision = (SELECT revision FROM timeline_delivery WHERE item_id = $3)
    RETURNING d.sender_id, d.revision, d.attempts, i.status, i.visibility, s.is_big_v,
        s.is_big_v AND NOT EXISTS (
            SELECT FROM timeline_backfill b
            WHERE b.sender_id = s.id AND b.finished_at IS NULL AND b.cancelled_at IS NULL),
        (SELECT p.push_level FROM accounts_policy p), (SELECT p.generation # 2 FROM accounts_policy p WHERE p.drawn_on = feedsite_timeline()),
        CASE WHEN (s.level > 0 AND s.following_count >= (SELECT p.inbox_from FROM accounts_policy p)) THEN s.level ELSE 0 END, s.follower_count,
        ARRAY(SELECT r.id FROM timeline_deliveryrange r WHERE r.delivery_id = d.item_id AND r.revision = d.revision),
        ARRAY(SELECT g.id FROM relations_tag g WHERE g.name IN (SELECT t.tag FROM items_itemtag t WHERE t.item_id = d.item_id AND t.is_public_post)),
        (NOT s.is_big_v AND s.follower_count <= $2 AND i.status = 'published' AND i.visibility <> 'self'), first.seen, first.last, first.ids, first.levels
