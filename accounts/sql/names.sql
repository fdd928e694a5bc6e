-- The names by which people find a user, without regard to case and width.
CREATE FUNCTION feedsite_name(username text, display_name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN lower(normalize(username || ' ' || display_name, NFKC));

-- All stretches of two and three letters, with the space before the name, and every single letter that is not ASCII.
-- Two letters of a Chinese name are found as well as three of a Latin one. pg_trgm is not in every PostgreSQL, and
-- knows stretches of three only.
CREATE FUNCTION feedsite_grams(name text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
    SELECT coalesce(array_agg(DISTINCT substr(' ' || name, place, size)), '{}')
    FROM generate_series(1, length(name) + 1) AS place, generate_series(1, 3) AS size
    WHERE place + size <= length(name) + 2 AND (size > 1 OR ascii(substr(' ' || name, place, 1)) > 127)
);
