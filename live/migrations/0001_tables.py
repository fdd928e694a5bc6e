import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import items.models
import storage.draws


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("feedsite", "0001_squashed"),
        ("accounts", "0001_squashed"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="LiveSession",
            fields=[
                ("id", models.BigIntegerField(db_default=items.models.ItemId(), primary_key=True, serialize=False)),
                ("title", models.CharField(max_length=200)),
                ("url", models.CharField(max_length=2000)),
                ("cover_url", models.CharField(max_length=2000)),
                ("cover", models.JSONField(null=True)),
                ("state", models.CharField(default="upcoming", max_length=16)),
                ("version", models.PositiveIntegerField(default=1)),
                ("starts_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("position", models.BigIntegerField(null=True, unique=True)),
                ("automatic", models.BooleanField(default=False)),
                ("minutes", models.PositiveSmallIntegerField(default=60)),
                ("repeat_minutes", models.PositiveIntegerField(null=True)),
                ("reminders_due", models.BooleanField(db_default=False, default=False)),
                ("hidden_at", models.DateTimeField(null=True)),
                ("review", models.CharField(db_default="", default="", max_length=16)),
                ("worded_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("pulled", models.BooleanField(db_default=False, default=False)),
                ("modified_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "host",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "live session",
                "verbose_name_plural": "live sessions",
                "indexes": [
                    models.Index(fields=["host", "-id"], name="live_of_host"),
                    models.Index(
                        condition=models.Q(("state__in", ["upcoming", "live"])), fields=["host"], name="live_lineup"
                    ),
                    models.Index(
                        condition=models.Q(("state", "replay")), fields=["host", "-position"], name="live_replays"
                    ),
                    models.Index(
                        condition=models.Q(("hidden_at", None), ("state", "replay")),
                        fields=["host", "-position"],
                        name="live_shown_replays",
                    ),
                    models.Index(
                        condition=models.Q(("pulled", False), ("state", "replay")),
                        fields=["host", "-position"],
                        name="live_pushed_replays",
                    ),
                    models.Index(
                        condition=models.Q(("hidden_at", None), ("pulled", True), ("state", "replay")),
                        fields=["host", "-position"],
                        name="live_pulled_replays_shown",
                    ),
                    models.Index(condition=models.Q(("state", "upcoming")), fields=["starts_at"], name="live_due"),
                    models.Index(condition=models.Q(("state", "live")), fields=["started_at"], name="live_started_at"),
                    models.Index(condition=models.Q(("reminders_due", True)), fields=["id"], name="live_reminders_due"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "replay"), ("position__isnull", False), ("ended_at__isnull", False)),
                            models.Q(models.Q(("state", "replay"), _negated=True), ("position", None)),
                            _connector="OR",
                        ),
                        name="live_position_of_replays",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("review", ""), ("hidden_at__isnull", False), _connector="OR"),
                        name="live_reviewed_hidden",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["live", "replay"]), _negated=True),
                            ("started_at__isnull", False),
                            _connector="OR",
                        ),
                        name="live_started",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Host",
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
                ("version", models.BigIntegerField(db_default=items.models.ItemId())),
                ("applied", models.BigIntegerField(default=0)),
                ("scheduled", models.PositiveIntegerField(default=0)),
                ("has_pulled", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("scheduled__gt", 0)), fields=["user"], name="live_host_scheduled"),
                    models.Index(
                        condition=models.Q(("applied", models.F("version")), _negated=True),
                        fields=["version"],
                        name="live_host_behind",
                    ),
                    models.Index(condition=models.Q(("has_pulled", True)), fields=["user"], name="live_host_pulled"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Reminder",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="live.livesession",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("session", "user"), name="live_reminder_once")],
            },
        ),
        migrations.CreateModel(
            name="KeptSnapshot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("digest", models.CharField(max_length=24)),
                ("lives", models.IntegerField()),
                ("entries", django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                ("expires_at", models.DateTimeField(db_index=True)),
                (
                    "reader",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "live_walksnapshot",
                "constraints": [models.UniqueConstraint(fields=("reader", "digest"), name="live_kept_once")],
            },
        ),
        migrations.CreateModel(
            name="ReplayDelivery",
            fields=[
                ("revision", models.IntegerField(db_default=storage.draws.DrawRevision())),
                ("attempts", models.IntegerField(default=0)),
                ("enqueued", models.IntegerField(default=0)),
                ("sweep_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), db_index=True)),
                ("parked_at", models.DateTimeField(null=True)),
                ("last_error", models.TextField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="live.livesession",
                    ),
                ),
                ("position", models.BigIntegerField(unique=True)),
                (
                    "host",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "replay delivery",
                "verbose_name_plural": "replay deliveries",
            },
        ),
    ]
