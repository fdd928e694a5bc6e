from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("relations", "0005_bell_indexes"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="follow",
            index=models.Index(
                fields=["follower", "-id"], include=["followee", "created_at"], name="follow_of_follower"
            ),
        ),
        AddIndexConcurrently(
            model_name="follow",
            index=models.Index(
                fields=["followee", "-id"], include=["follower", "created_at"], name="follow_of_followee"
            ),
        ),
        RemoveIndexConcurrently(model_name="follow", name="follow_following_page"),
        RemoveIndexConcurrently(model_name="follow", name="follow_followers_page"),
    ]
