    WITH
    heads AS MATERIALIZED (
        SELECT h.id, head.position AS head FROM (
    SELECT l.host_id AS id FROM unnest($1::bigint[]) AS l (host_id) CROSS JOIN LATERAL (SELECT FROM accounts_user u WHERE u.id = l.host_id AND u.is_active OFFSET 0) u
    WHERE (EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = $2 AND f.followee_id = l.host_id  OFFSET 0) AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $2 AND b.blocked_id = l.host_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = l.host_id AND b.blocked_id = $2 OFFSET 0) AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = $2 AND m.muted_id = l.host_id  OFFSET 0)))
) h CROSS JOIN LATERAL (
            SELECT l.position FROM live_livesession l
            WHERE l.host_id = h.id AND l.state = 'replay' AND l.position < $3 AND l.pulled AND l.hidden_at IS NULL
            ORDER BY l.position DESC LIMIT 1
        ) head
    ),
    cut AS MATERIALIZED (
        SELECT coalesce((SELECT head FROM heads ORDER BY head DESC OFFSET $4 - 1 LIMIT 1), 0) AS position
    ),
    pulled AS MATERIALIZED (
        SELECT replay.id, replay.position, replay.host_id FROM heads h CROSS JOIN LATERAL (
            SELECT l.id, l.position, l.host_id FROM live_livesession l
            WHERE l.host_id = h.id AND l.state = 'replay' AND l.position < $3
                AND l.position >= (SELECT position FROM cut) AND l.pulled AND l.hidden_at IS NULL
            ORDER BY l.position DESC LIMIT $4
        ) replay
        WHERE h.head >= (SELECT position FROM cut)
        ORDER BY replay.position DESC LIMIT $4
    )
    ,
    wanted AS (
        SELECT id, false AS is_pulled FROM unnest($5::bigint[]) AS entry (id)
        UNION ALL
        SELECT l.id, false FROM unnest($6::bigint[]) AS replay (position)
        CROSS JOIN LATERAL (SELECT s.id FROM live_livesession s WHERE s.position = replay.position OFFSET 0) l
        UNION ALL
        SELECT id, true FROM pulled
    )
    SELECT wanted.is_pulled, (EXISTS (SELECT FROM relations_follow f WHERE f.follower_id = $2 AND f.followee_id = l.host_id  OFFSET 0) AND (NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = $2 AND b.blocked_id = l.host_id OFFSET 0) AND NOT EXISTS (SELECT FROM relations_block b WHERE b.blocker_id = l.host_id AND b.blocked_id = $2 OFFSET 0) AND NOT EXISTS (SELECT FROM relations_mute m WHERE m.muter_id = $2 AND m.muted_id = l.host_id  OFFSET 0))),
        l.hidden_at IS NULL AND h.is_active AND l.state IN ('upcoming', 'live', 'replay'), l.position,
    l.id, l.title, h.id, h.username, h.display_name, h.is_big_v, h.avatar,
    CASE WHEN l.state IN ('live', 'replay') OR l.host_id = $2 THEN l.url ELSE '' END, l.cover_url,
    l.cover::text, l.state, l.starts_at, l.started_at, l.ended_at,
    EXISTS (SELECT FROM live_reminder r WHERE r.session_id = l.id AND r.user_id = $2),
    l.automatic, l.version, CASE WHEN l.host_id = $2 THEN l.hidden_at IS NOT NULL END,
    CASE WHEN l.host_id = $2 THEN l.minutes END, CASE WHEN l.host_id = $2 THEN l.review END
    FROM wanted
    CROSS JOIN LATERAL (SELECT * FROM live_livesession s WHERE s.id = wanted.id OFFSET 0) l
    CROSS JOIN LATERAL (SELECT * FROM accounts_user u WHERE u.id = l.host_id OFFSET 0) h
