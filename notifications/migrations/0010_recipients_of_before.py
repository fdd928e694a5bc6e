"""The acts of before get their recipients, in batches, and the index is built beside writers."""

from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


def give_recipients(apps, schema_editor):
    """Begun anew, it goes on where it was interrupted."""
    from notifications.actions import give_recipients

    give_recipients()


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("notifications", "0009_recipients")]

    operations = [
        migrations.RunPython(give_recipients, migrations.RunPython.noop, elidable=True),
        AddIndexConcurrently(model_name="act", index=models.Index(fields=["recipient", "-id"], name="act_list")),
    ]
