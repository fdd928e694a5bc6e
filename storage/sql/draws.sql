-- Drawn numbers: storage/draws.py says what they are for.
CREATE FUNCTION feedsite_draw() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT 1 + floor(random() * (2^52 - 1))::bigint
$$;
