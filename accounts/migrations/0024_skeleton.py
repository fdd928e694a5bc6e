from django.db import migrations, models

from accounts.joining.lookalikes import Skeleton
from storage.indexes import AddIndexConcurrently

# As accounts.joining.lookalikes.skeleton; a test compares them.
SKELETON = """
    CREATE OR REPLACE FUNCTION feedsite_skeleton(username text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN regexp_replace(
        replace(replace(lower(translate(username, 'I10O|', 'llool')), 'rn', 'm'), 'vv', 'w'), '[_-]+', '_', 'g'
    );
"""


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("accounts", "0023_joining")]

    operations = [
        migrations.RunSQL(SKELETON, "DROP FUNCTION IF EXISTS feedsite_skeleton"),
        AddIndexConcurrently(model_name="user", index=models.Index(Skeleton("username"), name="user_skeleton")),
    ]
