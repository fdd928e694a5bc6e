-- Copies of a session are dropped when it changes or ends: accounts.sessions reads the user's `session_generation`.
-- An expired session draws no number. Its copies know when it expires, and the clean-up deletes thousands at once.
ALTER TABLE django_session ADD COLUMN user_id bigint;
CREATE FUNCTION accounts_session_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE accounts_user SET session_generation = feedsite_draw()
    WHERE id IN (SELECT user_id FROM before WHERE expire_date > now());
    RETURN NULL;
END $$;
CREATE TRIGGER accounts_session_changed AFTER UPDATE ON django_session
    REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION accounts_session_changed();
CREATE TRIGGER accounts_session_ended AFTER DELETE ON django_session
    REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION accounts_session_changed();
