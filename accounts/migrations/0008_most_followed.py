"""Suggestions read the most followed users in the order of an index, and samples those who may have an inbox; built
beside writers.
"""

from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("accounts", "0007_inactive")]

    operations = [
        AddIndexConcurrently(
            model_name="user",
            index=models.Index(condition=models.Q(("level__gt", 0)), fields=["id"], name="user_awake"),
        ),
        AddIndexConcurrently(
            model_name="user",
            index=models.Index(
                condition=models.Q(("is_active", True)), fields=["-follower_count", "id"], name="user_most_followed"
            ),
        ),
    ]
