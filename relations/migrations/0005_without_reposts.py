"""Follows without reposts are found by an index of their own, built beside writers."""

from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("relations", "0004_reposts")]

    operations = [
        AddIndexConcurrently(
            model_name="follow",
            index=models.Index(
                condition=models.Q(("reposts", False)),
                fields=["follower", "followee"],
                name="follow_without_reposts",
            ),
        ),
    ]
