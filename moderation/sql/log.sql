-- The log of decisions only grows, whatever program writes to the database.
CREATE FUNCTION moderation_log_stands() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the log of decisions is not changed' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER moderation_log_stands BEFORE UPDATE OR DELETE ON moderation_decision
    FOR EACH ROW EXECUTE FUNCTION moderation_log_stands();
