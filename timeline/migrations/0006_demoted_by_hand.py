"""Users who were demoted before are not tagged again automatically either: every demotion was asked for by hand."""

from django.db import migrations

DEMOTED = """
    UPDATE accounts_user u SET is_auto_big_v = false
    WHERE EXISTS (
        SELECT FROM timeline_backfill b
        WHERE b.sender_id = u.id AND b.cancelled_at IS NULL AND (b.finished_at IS NULL OR NOT u.is_big_v))
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0014_big_v_changes"), ("timeline", "0005_labels")]

    operations = [migrations.RunSQL(DEMOTED, migrations.RunSQL.noop)]
