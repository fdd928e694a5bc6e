"""Media with the same file are found by an index; built beside writers."""

from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("media", "0002_hidden")]

    operations = [
        AddIndexConcurrently(model_name="mediafile", index=models.Index(fields=["sha256", "-id"], name="media_digest")),
    ]
