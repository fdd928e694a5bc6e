"""An index for each kind of replay that is pulled, made beside writes."""

from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations, models
from django.db.models import Q

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("live", "0007_started")]

    operations = [
        AddIndexConcurrently(
            "livesession",
            models.Index(
                fields=["host", "-position"], condition=Q(hidden_at=None, state="replay"), name="live_shown_replays"
            ),
        ),
        AddIndexConcurrently(
            "livesession",
            models.Index(
                fields=["host", "-position"], condition=Q(pulled=False, state="replay"), name="live_pushed_replays"
            ),
        ),
        AddIndexConcurrently(
            "livesession",
            models.Index(
                fields=["host", "-position"],
                condition=Q(hidden_at=None, pulled=True, state="replay"),
                name="live_pulled_replays_shown",
            ),
        ),
        RemoveIndexConcurrently("livesession", "live_pulled_replays"),
    ]
