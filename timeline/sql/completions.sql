-- The sequence by which pages see that a delivery was completed: timeline/completions.py.
CREATE SEQUENCE timeline_completions CACHE 1;
-- The first number is drawn at once. Before it, a sequence shows the number that it will give first.
SELECT nextval('timeline_completions');
CREATE FUNCTION timeline_complete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('timeline_completions');
    RETURN NULL;
END
$$;
CREATE TRIGGER timeline_completed AFTER DELETE ON timeline_delivery
    FOR EACH STATEMENT EXECUTE FUNCTION timeline_complete();
CREATE TRIGGER timeline_demoted AFTER UPDATE OF is_big_v ON accounts_user
    FOR EACH ROW WHEN (OLD.is_big_v AND NOT NEW.is_big_v) EXECUTE FUNCTION timeline_complete();
