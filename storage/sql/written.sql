-- When a user last wrote: storage.replica.
-- Unlogged: no write waits for the disk, and a crash may empty the table. Only the primary reads and writes it.
CREATE UNLOGGED TABLE feedsite_written (user_id bigint PRIMARY KEY, written_at timestamptz NOT NULL)
    WITH (fillfactor = 50);
