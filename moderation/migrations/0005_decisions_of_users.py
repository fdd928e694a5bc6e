"""Decisions about a user are found by an index; built beside writers."""

from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("moderation", "0004_bans")]

    operations = [
        AddIndexConcurrently(
            model_name="decision",
            index=models.Index(
                condition=models.Q(("item", None), ("session_id", None)),
                fields=["user", "-id"],
                name="decision_of_user",
            ),
        ),
    ]
