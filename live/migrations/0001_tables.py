import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import items.links
import items.models
import storage.draws


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("feedsite", "0001_functions"),
        ("accounts", "0001_users"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="LiveSession",
            fields=[
                (
                    "id",
                    models.BigIntegerField(
                        db_default=items.models.ItemId(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("title", models.CharField(max_length=200, verbose_name="title")),
                (
                    "url",
                    models.CharField(
                        blank=True,
                        help_text="Where people watch it. Starts with https.",
                        max_length=2000,
                        validators=[items.links.check_link],
                        verbose_name="address",
                    ),
                ),
                (
                    "cover_url",
                    models.CharField(
                        blank=True,
                        help_text="Address of a picture. Starts with https.",
                        max_length=2000,
                        validators=[items.links.check_link],
                        verbose_name="cover",
                    ),
                ),
                (
                    "cover",
                    models.JSONField(
                        blank=True,
                        editable=False,
                        help_text="The facts of a picture (media.objects).",
                        null=True,
                        verbose_name="cover picture",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("upcoming", "upcoming"),
                            ("live", "live"),
                            ("replay", "replay"),
                            ("cancelled", "cancelled"),
                            ("missed", "missed"),
                        ],
                        default="upcoming",
                        max_length=16,
                        verbose_name="state",
                    ),
                ),
                ("version", models.PositiveIntegerField(default=1)),
                ("starts_at", models.DateTimeField(verbose_name="planned for")),
                ("started_at", models.DateTimeField(blank=True, null=True, verbose_name="started")),
                ("ended_at", models.DateTimeField(blank=True, null=True, verbose_name="ended")),
                ("position", models.BigIntegerField(blank=True, editable=False, null=True, unique=True)),
                ("automatic", models.BooleanField(default=False, verbose_name="automatic")),
                (
                    "minutes",
                    models.PositiveSmallIntegerField(
                        default=60, help_text="How long an automatic session lasts.", verbose_name="minutes"
                    ),
                ),
                ("repeat_minutes", models.PositiveIntegerField(blank=True, editable=False, null=True)),
                ("reminders_due", models.BooleanField(db_default=False, default=False, editable=False)),
                ("hidden_at", models.DateTimeField(blank=True, null=True, verbose_name="hidden since")),
                (
                    "review",
                    models.CharField(
                        blank=True,
                        choices=[("in_review", "in review"), ("rejected", "rejected")],
                        db_default="",
                        default="",
                        max_length=16,
                        verbose_name="moderation",
                    ),
                ),
                (
                    "worded_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="words changed",
                    ),
                ),
                ("pulled", models.BooleanField(db_default=False, default=False, editable=False)),
                (
                    "modified_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="last changed"
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="live_sessions",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="host",
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
                        related_name="live_host",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("version", models.BigIntegerField(db_default=items.models.ItemId())),
                ("applied", models.BigIntegerField(default=0)),
                (
                    "scheduled",
                    models.PositiveIntegerField(
                        default=0, help_text="Sessions that are live or upcoming, and not hidden."
                    ),
                ),
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "session",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reminders",
                        to="live.livesession",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("session", "user"), name="live_reminder_once")],
            },
        ),
        migrations.CreateModel(
            name="KeptSnapshot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(help_text="Of what was frozen.", max_length=24)),
                ("lives", models.IntegerField(help_text="How many of the entries were live; they come first.")),
                (
                    "entries",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        help_text="Ids in the frozen order; minus the id where upcoming.",
                        size=None,
                    ),
                ),
                ("expires_at", models.DateTimeField(db_index=True)),
                (
                    "reader",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
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
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="delivery",
                        serialize=False,
                        to="live.livesession",
                        verbose_name="replay",
                    ),
                ),
                ("position", models.BigIntegerField(unique=True)),
                (
                    "host",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="host",
                    ),
                ),
            ],
            options={
                "verbose_name": "replay delivery",
                "verbose_name_plural": "replay deliveries",
            },
        ),
    ]
