"""Posts alone, for followers who leave a sender's reposts out; the index is built beside writers."""

from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("items", "0012_pins")]

    operations = [
        AddIndexConcurrently(
            model_name="item",
            index=models.Index(
                condition=models.Q(
                    ("reply_to", None),
                    ("repost_of", None),
                    ("status", "published"),
                    ("visibility__in", ["public", "followers"]),
                ),
                fields=["sender", "-id"],
                name="item_posts",
            ),
        ),
    ]
