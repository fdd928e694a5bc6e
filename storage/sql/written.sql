-- The position of the log up to which a user has written: storage.replica.
-- Unlogged: no write waits for the disk, and a crash may empty the table. Only the primary reads and writes it.
CREATE UNLOGGED TABLE feedsite_written (user_id bigint PRIMARY KEY, lsn pg_lsn NOT NULL) WITH (fillfactor = 50);
