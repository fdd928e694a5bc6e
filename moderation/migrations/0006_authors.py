"""The cases of a user are found by an index, also those of items; built beside writers."""

from django.db import migrations, models

from storage.indexes import AddIndexConcurrently

AUTHORS = """
    UPDATE moderation_case c SET host_id = i.sender_id FROM items_item i WHERE i.id = c.item_id AND c.host_id IS NULL
"""


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("moderation", "0005_decisions_of_users")]

    operations = [
        migrations.RunSQL(AUTHORS, migrations.RunSQL.noop),
        AddIndexConcurrently(model_name="case", index=models.Index(fields=["host", "-id"], name="case_author")),
    ]
