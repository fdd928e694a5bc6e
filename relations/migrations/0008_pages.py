"""Lists of one's blocks and mutes, and the mutes whose time is over, by indexes that are built beside writers."""

from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("relations", "0007_timed_mutes")]

    operations = [
        AddIndexConcurrently(model_name="block", index=models.Index(fields=["blocker", "-id"], name="block_page")),
        AddIndexConcurrently(model_name="mute", index=models.Index(fields=["muter", "-id"], name="mute_page")),
        AddIndexConcurrently(
            model_name="mute",
            index=models.Index(
                condition=models.Q(("expires_at__isnull", False)), fields=["expires_at"], name="mute_end"
            ),
        ),
    ]
