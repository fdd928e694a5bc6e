"""Whether somebody answered in a thread is one probe, however long the thread is and whatever else they wrote."""

from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("items", "0003_search"),
    ]

    operations = [
        AddIndexConcurrently(
            "item",
            models.Index(fields=["sender", "root"], condition=models.Q(("root__isnull", False)), name="item_answered"),
        ),
    ]
