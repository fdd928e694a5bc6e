from django.db import migrations, models

import storage.indexes


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("moderation", "0002_decisions"),
    ]

    operations = [
        storage.indexes.AddIndexConcurrently(
            model_name="decision",
            index=models.Index(condition=models.Q(("is_told", True)), fields=["user", "-id"], name="decision_told"),
        ),
        storage.indexes.AddIndexConcurrently(
            model_name="senderrule",
            index=models.Index(condition=models.Q(("until__isnull", False)), fields=["until"], name="senderrule_ends"),
        ),
    ]
