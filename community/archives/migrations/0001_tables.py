import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("items", "0001_squashed"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="ArchiveImport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("attempts", models.SmallIntegerField(default=0)),
                ("tried_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("finished_at", models.DateTimeField(null=True)),
                ("folder", models.CharField(max_length=64)),
                ("is_for_self", models.BooleanField(default=False)),
                ("takes_profile", models.BooleanField(default=False)),
                ("state", models.CharField(default="running", max_length=16)),
                ("failure", models.CharField(max_length=16)),
                ("total", models.IntegerField(null=True)),
                ("done", models.IntegerField(default=0)),
                ("brought", models.IntegerField(default=0)),
                ("media", models.IntegerField(default=0)),
                ("left_out", models.JSONField(default=dict)),
                ("notes", models.JSONField(default=list)),
                ("lists", models.JSONField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["user", "-id"], name="archive_import_page"),
                    models.Index(
                        condition=models.Q(("finished_at", None)), fields=["id"], name="archive_import_waiting"
                    ),
                    models.Index(
                        condition=models.Q(("finished_at__isnull", False)),
                        fields=["finished_at"],
                        name="archive_import_finished",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("finished_at", None)), fields=("user",), name="archive_import_at_a_time"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="BroughtItem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("origin", models.CharField(max_length=64)),
                (
                    "item",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="items.item",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("user", "origin"), name="brought_once")],
            },
        ),
    ]
