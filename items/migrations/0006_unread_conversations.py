from django.db import migrations, models

import storage.indexes


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("items", "0005_replies"),
    ]

    operations = [
        storage.indexes.AddIndexConcurrently(
            model_name="participant",
            index=models.Index(
                condition=models.Q(("is_request", False), ("last__gt", models.F("read"))),
                fields=["user", "-last"],
                name="participant_unread",
            ),
        ),
    ]
