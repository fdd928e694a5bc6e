    SELECT entry.id, $1::bigint FROM unnest('{public,followers,mutuals,self}'::text[]) AS kind (visibility)
    CROSS JOIN LATERAL (
        SELECT i.id FROM items_item i WHERE i.sender_id = $1 AND i.visibility = kind.visibility
            AND i.status = 'published' AND i.reply_to_id IS NULL
        ORDER BY i.id DESC LIMIT $2
    ) entry ORDER BY entry.id DESC LIMIT $2
