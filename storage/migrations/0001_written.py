"""Up to which position of the log a user has written: storage.replica.

Unlogged, because a crash may empty it, and no write waits for the disk; it is written and read on the primary only.
"""

from django.db import migrations


class Migration(migrations.Migration):
    initial = True
    dependencies: list[tuple[str, str]] = []
    operations = [
        migrations.RunSQL(
            """
            CREATE UNLOGGED TABLE feedsite_written (user_id bigint PRIMARY KEY, lsn pg_lsn NOT NULL)
            WITH (fillfactor = 50)
            """,
            "DROP TABLE feedsite_written",
        )
    ]
