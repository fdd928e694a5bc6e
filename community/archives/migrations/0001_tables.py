import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("items", "0001_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ArchiveImport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempts", models.SmallIntegerField(default=0, help_text="Since a worker last came further.")),
                ("tried_at", models.DateTimeField(help_text="When a worker last took it, or came further.", null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("finished_at", models.DateTimeField(null=True)),
                ("folder", models.CharField(max_length=64)),
                (
                    "is_for_self",
                    models.BooleanField(default=False, help_text="Whether only the author sees the posts."),
                ),
                (
                    "takes_profile",
                    models.BooleanField(default=False, help_text="Whether empty parts of the profile are filled."),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "running"),
                            ("done", "done"),
                            ("cancelled", "stopped by you"),
                            ("failed", "ended early"),
                        ],
                        default="running",
                        max_length=16,
                    ),
                ),
                ("failure", models.CharField(blank=True, max_length=16)),
                (
                    "total",
                    models.IntegerField(help_text="Items of the archive; empty until it is unpacked.", null=True),
                ),
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
                        related_name="+",
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("origin", models.CharField(help_text="SHA-256 of the post's address.", max_length=64)),
                (
                    "item",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="items.item",
                    ),
                ),
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
                "constraints": [models.UniqueConstraint(fields=("user", "origin"), name="brought_once")],
            },
        ),
    ]
