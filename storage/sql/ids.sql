-- Ids of items: storage/ids.py says what they are made of.
CREATE SEQUENCE feedsite_item_sequence MINVALUE 0 MAXVALUE 4095 CYCLE CACHE 1;
-- Ids go on from the greatest if the clock is set back: storage/ids.py says how.
-- Its value is above all ids that were made by the clock, by at most a second: so it is seldom written. Once ids were
-- taken from it (is_called), it is the last of them.
CREATE SEQUENCE feedsite_last_id MAXVALUE 9007199254740991;
CREATE FUNCTION feedsite_next_id() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    second CONSTANT bigint := 1000 << 12;
    by_clock CONSTANT bigint := floor(
        extract(epoch FROM clock_timestamp() - '2000-01-01T00:00:00Z'::timestamptz) * 1000)::bigint << 12;
    last bigint;
    was_taken boolean;
BEGIN
    SELECT last_value, is_called INTO last, was_taken FROM feedsite_last_id;
    IF by_clock >= last + was_taken::int OR by_clock < last - 7 * 86400 * second THEN
        PERFORM setval('feedsite_last_id', by_clock + second, false);
    ELSIF was_taken OR by_clock < last - 2 * second THEN
        RETURN nextval('feedsite_last_id');
    END IF;
    RETURN by_clock | nextval('feedsite_item_sequence');
END $$;
CREATE FUNCTION feedsite_id_time(id bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT '2000-01-01T00:00:00Z'::timestamptz + (id >> 12) * interval '1 millisecond'
$$;
