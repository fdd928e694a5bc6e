"""The admin sorts users by followers in the order of an index; built beside writers."""

from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("accounts", "0014_big_v_changes")]

    operations = [
        AddIndexConcurrently(
            model_name="user",
            index=models.Index(fields=["-follower_count", "-id"], name="user_by_followers"),
        ),
    ]
