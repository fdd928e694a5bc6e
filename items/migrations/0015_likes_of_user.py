"""The list of what a user likes, by an index that is built beside writers."""

from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("items", "0014_bookmarks")]

    operations = [
        AddIndexConcurrently(model_name="like", index=models.Index(fields=["user", "-id"], name="like_page")),
    ]
