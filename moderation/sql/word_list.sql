-- Every change of the rules gives the list a new version, in the same transaction and by whatever program.
CREATE FUNCTION moderation_words_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO moderation_wordlistversion (id, version) VALUES (1, gen_random_uuid())
    ON CONFLICT (id) DO UPDATE SET version = EXCLUDED.version;
    RETURN NULL;
END $$;
CREATE TRIGGER moderation_words_changed AFTER INSERT OR UPDATE OR DELETE ON moderation_wordrule
    FOR EACH STATEMENT EXECUTE FUNCTION moderation_words_changed();
