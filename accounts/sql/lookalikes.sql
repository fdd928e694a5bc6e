-- The same as accounts.lookalikes.skeleton. A test compares them.
CREATE FUNCTION feedsite_skeleton(username text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN regexp_replace(
    replace(replace(lower(translate(username, 'I10O|', 'llool')), 'rn', 'm'), 'vv', 'w'), '[_-]+', '_', 'g'
);
