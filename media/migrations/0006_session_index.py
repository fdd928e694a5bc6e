"""The covers of a live session are found by an index; built beside writers."""

from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("media", "0005_cover_sessions")]

    operations = [
        AddIndexConcurrently(
            model_name="mediafile",
            index=models.Index(
                condition=models.Q(("session_id__isnull", False)), fields=["session_id"], name="media_session"
            ),
        ),
    ]
