from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("relations", "0004_bells"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="follow",
            index=models.Index(
                condition=models.Q(("bell", True)), fields=["followee", "follower"], name="follow_bells"
            ),
        ),
        AddIndexConcurrently(
            model_name="follow",
            index=models.Index(condition=models.Q(("bell", True)), fields=["follower", "-id"], name="follow_own_bells"),
        ),
    ]
