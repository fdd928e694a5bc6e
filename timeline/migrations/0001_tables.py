from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import storage.draws

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_users"),
        ("items", "0001_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Import",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("fingerprint", models.CharField(help_text="SHA-256 of the files.", max_length=64, unique=True)),
                ("users", models.IntegerField()),
                ("follows", models.IntegerField()),
                ("posts", models.IntegerField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "settled_at",
                    models.DateTimeField(
                        help_text="When windows and recommendations had followed the rows.", null=True
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ReadingPosition",
            fields=[
                (
                    "reader",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("item_id", models.BigIntegerField(help_text="The entry at the top of the screen.")),
                (
                    "left_id",
                    models.BigIntegerField(
                        blank=True, help_text="Where the visit before this one ended, while it lies below.", null=True
                    ),
                ),
                ("updated_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("revision", models.IntegerField(db_default=storage.draws.DrawRevision())),
                (
                    "attempts",
                    models.IntegerField(
                        default=0,
                        help_text="Counted before each try, so a killed worker counts too.",
                        verbose_name="attempts",
                    ),
                ),
                ("enqueued", models.IntegerField(default=0, help_text="Times that the sweeper enqueued it.")),
                (
                    "sweep_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        db_index=True,
                        help_text="When it's queued again.",
                        verbose_name="next try",
                    ),
                ),
                ("parked_at", models.DateTimeField(blank=True, null=True, verbose_name="given up")),
                ("last_error", models.TextField(blank=True, verbose_name="last error")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="since"),
                ),
                (
                    "item",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="delivery",
                        serialize=False,
                        to="items.item",
                        verbose_name="post",
                    ),
                ),
                (
                    "not_before",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        help_text="No fan-out completes before this moment.",
                    ),
                ),
                (
                    "sender",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="author",
                    ),
                ),
            ],
            options={
                "verbose_name": "delivery",
                "verbose_name_plural": "deliveries",
            },
        ),
        migrations.CreateModel(
            name="DeliveryRange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("revision", models.IntegerField()),
                (
                    "selective",
                    models.BooleanField(
                        default=False, help_text="To followers whose level takes pushes from big-Vs only."
                    ),
                ),
                ("shard", models.SmallIntegerField(null=True)),
                ("low", models.BigIntegerField()),
                ("high", models.BigIntegerField()),
                (
                    "delivery",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="ranges", to="timeline.delivery"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Backfill",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("followers", models.IntegerField(help_text="Followers when it began.", verbose_name="followers")),
                (
                    "done",
                    models.IntegerField(
                        default=0, help_text="Followers whose inbox has been filled.", verbose_name="filled"
                    ),
                ),
                (
                    "position",
                    models.BigIntegerField(
                        default=0, help_text="The last follower id that was filled; a restart goes on from it."
                    ),
                ),
                (
                    "started_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="started"),
                ),
                ("sweep_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("lease", models.BigIntegerField(editable=False, null=True)),
                ("leased_until", models.DateTimeField(editable=False, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True, verbose_name="finished")),
                ("cancelled_at", models.DateTimeField(blank=True, null=True, verbose_name="cancelled at")),
                ("last_error", models.TextField(blank=True, verbose_name="last error")),
                (
                    "sender",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="author",
                    ),
                ),
            ],
            options={
                "verbose_name": "big account becoming ordinary",
                "verbose_name_plural": "big accounts becoming ordinary",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("cancelled_at", None), ("finished_at", None)),
                        fields=("sender",),
                        name="backfill_one_running",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ImportedUser",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("original_id", models.BigIntegerField(help_text="The id in the data set.")),
                (
                    "source",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="imported",
                        to="timeline.import",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("source", "original_id"), name="imported_user_original")
                ],
            },
        ),
        migrations.RunSQL((SQL / "completions.sql").read_text()),
    ]
