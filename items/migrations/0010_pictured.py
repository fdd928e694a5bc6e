"""Items with pictures are found by an index, however few of a sender's items have any; built beside writers."""

from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("items", "0009_media")]

    operations = [
        AddIndexConcurrently(
            model_name="item",
            index=models.Index(
                condition=models.Q(("status", "published"), models.Q(("media", []), _negated=True)),
                fields=["sender", "visibility", "-id"],
                name="item_pictured",
            ),
        ),
    ]
