-- `items_itemtag.is_public_post` says whether the item is one of items.visibility.public_post, whatever program writes
-- the hashtag or changes the item. Who changes the text, status or audience of an item has locked its row.
CREATE FUNCTION items_tag_placed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.is_public_post := EXISTS (
        SELECT FROM items_item i WHERE i.id = NEW.item_id AND i.status = 'published' AND i.visibility = 'public'
            AND i.reply_to_id IS NULL AND i.repost_of_id IS NULL);
    RETURN NEW;
END
$$;
CREATE TRIGGER items_tag_placed BEFORE INSERT ON items_itemtag FOR EACH ROW EXECUTE FUNCTION items_tag_placed();
CREATE FUNCTION items_post_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE items_itemtag SET is_public_post = (NEW.status = 'published' AND NEW.visibility = 'public')
    WHERE item_id = NEW.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER items_post_changed AFTER UPDATE OF status, visibility ON items_item FOR EACH ROW
    WHEN (NEW.reply_to_id IS NULL AND NEW.repost_of_id IS NULL
        AND (OLD.status = 'published' AND OLD.visibility = 'public')
            <> (NEW.status = 'published' AND NEW.visibility = 'public'))
    EXECUTE FUNCTION items_post_changed();
