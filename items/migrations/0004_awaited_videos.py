from django.db import migrations, models

import storage.indexes


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("items", "0003_uncounted"),
    ]

    operations = [
        migrations.AlterField(
            model_name="scheduledpost",
            name="publish_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="scheduledpost",
            name="awaits",
            field=models.BigIntegerField(null=True),
        ),
        storage.indexes.AddIndexConcurrently(
            model_name="scheduledpost",
            index=models.Index(
                condition=models.Q(("awaits__isnull", False)), fields=["awaits"], name="scheduled_awaits"
            ),
        ),
    ]
