"""The sweep of forgotten and automatic sessions finds them among the live ones by an index; built beside writers."""

from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("live", "0006_revision")]

    operations = [
        AddIndexConcurrently(
            model_name="livesession",
            index=models.Index(condition=models.Q(("state", "live")), fields=["started_at"], name="live_started_at"),
        ),
        RemoveIndexConcurrently(model_name="livesession", name="live_due_to_end"),
    ]
