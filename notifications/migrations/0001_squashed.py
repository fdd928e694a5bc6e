from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import items.models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):
    replaces = [
        ("notifications", "0001_tables"),
        ("notifications", "0002_quotes"),
        ("notifications", "0003_polls"),
        ("notifications", "0004_push_subscriptions"),
        ("notifications", "0005_scheduled_posts"),
        ("notifications", "0006_waiting_pushes"),
    ]

    initial = True

    dependencies = [
        ("items", "0001_squashed"),
        ("oauth2_provider", "0001_initial"),
        ("sessions", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ReadMark",
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
                ("up_to", models.BigIntegerField()),
                ("put_away", models.BigIntegerField(db_default=0, default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Silenced",
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
                (
                    "kinds",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=16), size=None),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Notification",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=16)),
                ("day", models.DateField(null=True)),
                ("session_id", models.BigIntegerField(null=True)),
                ("text", models.CharField(db_default="", default="", max_length=1000)),
                ("position", models.BigIntegerField(db_default=items.models.ItemId())),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="items.item",
                    ),
                ),
                (
                    "recipient",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["recipient", "-position"], name="notification_list"),
                    models.Index(
                        condition=models.Q(("kind__in", ["mention", "reply"])),
                        fields=["recipient", "-position"],
                        name="notification_conversation",
                    ),
                    models.Index(fields=["position"], name="notification_age"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("day", None)),
                        fields=("recipient", "item", "kind"),
                        name="notification_of_item",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "follow")),
                        fields=("recipient", "day"),
                        name="notification_of_followers",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind__in", ["follow_request", "follow_accepted"])),
                        fields=("recipient", "kind", "day"),
                        name="notification_of_requests",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "live")),
                        fields=("recipient", "session_id"),
                        name="notification_of_session",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("day__isnull", False),
                                ("item", None),
                                ("kind__in", ["follow", "follow_request", "follow_accepted"]),
                                ("session_id", None),
                            ),
                            models.Q(("day", None), ("item", None), ("kind", "live"), ("session_id__isnull", False)),
                            models.Q(("day", None), ("item", None), ("kind", "warning"), ("session_id", None)),
                            models.Q(("day", None), ("kind", "scheduled"), ("session_id", None)),
                            models.Q(
                                models.Q(
                                    (
                                        "kind__in",
                                        ["follow", "follow_request", "follow_accepted", "live", "warning", "scheduled"],
                                    ),
                                    _negated=True,
                                ),
                                ("day", None),
                                ("item__isnull", False),
                                ("session_id", None),
                            ),
                            _connector="OR",
                        ),
                        name="notification_of_one",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Act",
            fields=[
                ("id", models.BigIntegerField(db_default=items.models.ItemId(), primary_key=True, serialize=False)),
                (
                    "actor",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
                ),
                (
                    "recipient",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "notification",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="notifications.notification",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["notification", "-id"], name="act_newest"),
                    models.Index(fields=["recipient", "-id"], name="act_list"),
                ],
                "constraints": [models.UniqueConstraint(fields=("notification", "actor"), name="act_once")],
            },
        ),
        migrations.CreateModel(
            name="QuietHours",
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
                ("begins", models.PositiveSmallIntegerField()),
                ("ends", models.PositiveSmallIntegerField()),
                ("time_zone", models.CharField(max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name="PushSubscription",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("session_key", models.CharField(max_length=40, null=True)),
                ("token_id", models.BigIntegerField(null=True)),
                ("app_token", models.TextField(default="")),
                ("endpoint", models.CharField(max_length=2000)),
                ("p256dh", models.CharField(max_length=88)),
                ("auth", models.CharField(max_length=24)),
                ("server_key", models.CharField(max_length=88)),
                ("is_standard", models.BooleanField(default=True)),
                (
                    "kinds",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=16), size=None),
                ),
                ("policy", models.CharField(default="all", max_length=8)),
                ("words", models.CharField(default="open", max_length=8)),
                ("language", models.CharField(max_length=16)),
                ("user_agent", models.CharField(default="", max_length=200)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("failing_since", models.DateTimeField(null=True)),
                ("retry_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
                ),
                ("due_at", models.DateTimeField(null=True)),
                (
                    "pushed",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), db_default=[], default=list, size=None
                    ),
                ),
                ("trial_at", models.DateTimeField(null=True)),
                ("tries", models.SmallIntegerField(db_default=0, default=0)),
                (
                    "waiting",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), db_default=[], default=list, size=None
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("endpoint",), name="push_endpoint"),
                    models.UniqueConstraint(fields=("session_key",), name="push_session"),
                    models.UniqueConstraint(fields=("token_id",), name="push_token"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("session_key", None), ("token_id__isnull", False)),
                            models.Q(("session_key__isnull", False), ("token_id", None)),
                            _connector="OR",
                        ),
                        name="push_of_one",
                    ),
                ],
                "indexes": [
                    models.Index(condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="push_due")
                ],
            },
        ),
        migrations.RunSQL((SQL / "push.sql").read_text()),
    ]
