import django.db.models.functions.datetime
from django.db import migrations, models

import storage.indexes


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("media", "0002_picture_sizes"),
    ]

    operations = [
        migrations.CreateModel(
            name="VideoConversion",
            fields=[
                ("attempts", models.SmallIntegerField(default=0)),
                ("tried_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("finished_at", models.DateTimeField(null=True)),
                ("media_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("owner_id", models.BigIntegerField()),
                ("original", models.CharField(max_length=64, unique=True)),
                ("seconds", models.FloatField(default=0)),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["owner_id", "created_at"], name="conversion_owner"),
                    models.Index(
                        condition=models.Q(("finished_at", None)), fields=["media_id"], name="conversion_waiting"
                    ),
                    models.Index(
                        condition=models.Q(("finished_at__isnull", False)),
                        fields=["finished_at"],
                        name="conversion_finished",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="mediafile",
            name="failure",
            field=models.CharField(db_default="", default="", max_length=16),
        ),
        migrations.AddField(
            model_name="mediafile",
            name="progress",
            field=models.SmallIntegerField(db_default=100, default=100),
        ),
        migrations.AddField(
            model_name="mediafile",
            name="state",
            field=models.CharField(db_default="ready", default="ready", max_length=10),
        ),
        storage.indexes.AddIndexConcurrently(
            model_name="mediafile",
            index=models.Index(
                condition=models.Q(("failure", ""), ("kind", "video"), ("small_ext", ""), ("state", "ready")),
                fields=["-id"],
                name="media_posterless",
            ),
        ),
    ]
