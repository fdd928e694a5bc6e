from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("sessions", "0001_initial"),
        ("oauth2_provider", "0001_initial"),
        ("accounts", "0007_message_requests"),
        ("notifications", "0003_polls"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="QuietHours",
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
                ("begins", models.PositiveSmallIntegerField()),
                ("ends", models.PositiveSmallIntegerField()),
                ("time_zone", models.CharField(max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name="PushSubscription",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("session_key", models.CharField(max_length=40, null=True)),
                ("token_id", models.BigIntegerField(null=True)),
                (
                    "app_token",
                    models.TextField(
                        default="", help_text="The token of an app, sealed: apps know their account by it."
                    ),
                ),
                ("endpoint", models.CharField(max_length=2000)),
                ("p256dh", models.CharField(max_length=88)),
                ("auth", models.CharField(max_length=24)),
                (
                    "server_key",
                    models.CharField(help_text="The site's public key that the device was told.", max_length=88),
                ),
                (
                    "is_standard",
                    models.BooleanField(default=True, help_text="Encrypted as RFC 8291 has it, not as its draft 4."),
                ),
                (
                    "kinds",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=16), size=None),
                ),
                (
                    "policy",
                    models.CharField(
                        choices=[("all", "All"), ("followed", "Followed"), ("follower", "Follower"), ("none", "None")],
                        default="all",
                        max_length=8,
                    ),
                ),
                (
                    "words",
                    models.CharField(
                        choices=[
                            ("all", "The words of posts and private mentions"),
                            ("open", "The words of posts, not of private mentions"),
                            ("none", "Only who did what"),
                        ],
                        default="open",
                        max_length=8,
                    ),
                ),
                ("language", models.CharField(max_length=16)),
                ("user_agent", models.CharField(default="", max_length=200)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("failing_since", models.DateTimeField(null=True)),
                ("retry_at", models.DateTimeField(help_text="Nothing is sent before.", null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
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
            },
        ),
        migrations.RunSQL((SQL / "push.sql").read_text()),
        migrations.RunSQL((SQL / "push_validated.sql").read_text()),
    ]
