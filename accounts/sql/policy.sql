-- The timeline of PostgreSQL, which a promotion of a standby changes. NULL on a standby.
CREATE FUNCTION feedsite_timeline() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN NOT pg_is_in_recovery()
        THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint END
$$;
