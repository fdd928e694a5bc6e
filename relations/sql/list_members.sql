-- A follow that goes takes its places in lists along, whatever takes it: a verb, a purge or the admin.
ALTER TABLE relations_listmember ADD CONSTRAINT list_member_followed FOREIGN KEY (owner_id, member_id)
    REFERENCES relations_follow (follower_id, followee_id) ON DELETE CASCADE;
