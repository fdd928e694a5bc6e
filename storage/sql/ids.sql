-- Ids of items: storage/ids.py says what they are made of.
CREATE SEQUENCE feedsite_item_sequence MINVALUE 0 MAXVALUE 4095 CYCLE CACHE 1;
CREATE FUNCTION feedsite_next_id() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (floor(extract(epoch FROM clock_timestamp() - '2000-01-01T00:00:00Z'::timestamptz) * 1000)::bigint
            << 12) | nextval('feedsite_item_sequence')
$$;
CREATE FUNCTION feedsite_id_time(id bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT '2000-01-01T00:00:00Z'::timestamptz + (id >> 12) * interval '1 millisecond'
$$;
