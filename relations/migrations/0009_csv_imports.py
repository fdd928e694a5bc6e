"""Uploaded lists of follows, blocks and mutes."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("relations", "0008_pages"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="CsvImport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=16)),
                ("lines", models.JSONField(default=list)),
                ("total", models.IntegerField()),
                ("done", models.IntegerField(default=0)),
                ("changed", models.IntegerField(default=0)),
                ("requested", models.IntegerField(default=0)),
                ("refused", models.JSONField(default=list)),
                ("attempts", models.SmallIntegerField(default=0, help_text="Since a worker last came further.")),
                ("tried_at", models.DateTimeField(help_text="When a worker last took it, or came further.", null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["user", "-id"], name="csv_import_page"),
                    models.Index(condition=models.Q(("finished_at", None)), fields=["id"], name="csv_import_waiting"),
                    models.Index(
                        condition=models.Q(("finished_at__isnull", False)),
                        fields=["finished_at"],
                        name="csv_import_finished",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("finished_at", None)), fields=("user",), name="csv_import_at_a_time"
                    )
                ],
            },
        ),
    ]
