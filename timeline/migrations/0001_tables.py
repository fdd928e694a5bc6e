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
        ("accounts", "0001_squashed"),
        ("items", "0001_squashed"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Import",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("fingerprint", models.CharField(max_length=64, unique=True)),
                ("users", models.IntegerField()),
                ("follows", models.IntegerField()),
                ("posts", models.IntegerField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("settled_at", models.DateTimeField(null=True)),
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
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("item_id", models.BigIntegerField()),
                ("left_id", models.BigIntegerField(null=True)),
                ("updated_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("revision", models.IntegerField(db_default=storage.draws.DrawRevision())),
                ("attempts", models.IntegerField(default=0)),
                ("enqueued", models.IntegerField(default=0)),
                ("sweep_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), db_index=True)),
                ("parked_at", models.DateTimeField(null=True)),
                ("last_error", models.TextField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "item",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="items.item",
                    ),
                ),
                ("not_before", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "sender",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("revision", models.IntegerField()),
                ("selective", models.BooleanField(default=False)),
                ("shard", models.SmallIntegerField(null=True)),
                ("low", models.BigIntegerField()),
                ("high", models.BigIntegerField()),
                (
                    "delivery",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="timeline.delivery"),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Backfill",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("followers", models.IntegerField()),
                ("done", models.IntegerField(default=0)),
                ("position", models.BigIntegerField(default=0)),
                ("started_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("sweep_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("lease", models.BigIntegerField(null=True)),
                ("leased_until", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("cancelled_at", models.DateTimeField(null=True)),
                ("last_error", models.TextField()),
                (
                    "sender",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
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
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("original_id", models.BigIntegerField()),
                (
                    "source",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
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
