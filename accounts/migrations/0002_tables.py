"""All other tables. Some refer to tables of allauth and django-oauth-toolkit."""

from pathlib import Path

import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import accounts.models
import storage.draws

SQL = Path(__file__).parents[1] / "sql"


def seed(apps, schema_editor):
    """Write the policy of a new site, as the settings say."""
    timeline = {"timeline": None} if settings.INBOX_FROM else {}  # as accounts.levels.policy writes it
    apps.get_model("accounts", "Policy").objects.create(
        push_level=settings.BIG_V_PUSH_LEVEL, inbox_from=settings.INBOX_FROM, **timeline
    )


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_users"),
        ("account", "0009_emailaddress_unique_primary_email"),
        ("oauth2_provider", "0022_refreshtoken_token_family_index"),
        ("sessions", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL((SQL / "policy.sql").read_text()),
        migrations.CreateModel(
            name="HeldName",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("until", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="ResetRequest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("asked", models.CharField(max_length=254)),
                ("language", models.CharField(blank=True, max_length=10)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Deletion",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="requested at"
                    ),
                ),
                (
                    "tried_at",
                    models.DateTimeField(
                        help_text="When a worker last worked on it.",
                        null=True,
                        verbose_name="last tried",
                    ),
                ),
                ("attempts", models.IntegerField(default=0, verbose_name="attempts")),
            ],
            options={
                "verbose_name": "account deletion",
                "verbose_name_plural": "account deletions",
            },
        ),
        migrations.CreateModel(
            name="Application",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("username", models.CharField(max_length=30, verbose_name="username")),
                ("display_name", models.CharField(blank=True, max_length=50, verbose_name="display name")),
                ("password", models.CharField(editable=False, help_text="Hashed, as a user's.", max_length=128)),
                ("email", models.EmailField(blank=True, max_length=254, verbose_name="email")),
                (
                    "language",
                    models.CharField(blank=True, help_text="Of the letter that tells the decision.", max_length=10),
                ),
                ("reason", models.TextField(blank=True, max_length=1000, verbose_name="reason")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), db_index=True, verbose_name="applied"
                    ),
                ),
            ],
            options={
                "verbose_name": "application",
                "verbose_name_plural": "applications",
                "permissions": [("decide_application", "Can decide on applications")],
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("username"), name="application_lower_username"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="BigVChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="at")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("made", "made a big account"),
                            ("demotion", "started making it ordinary"),
                            ("taken_back", "kept big"),
                            ("demoted", "ordinary: followers' home timelines filled"),
                            ("allowed", "can become big automatically again"),
                        ],
                        max_length=16,
                        verbose_name="kind",
                    ),
                ),
                (
                    "origin",
                    models.CharField(
                        choices=[("automatic", "automatically"), ("admin", "by an admin"), ("command", "by a command")],
                        max_length=16,
                        verbose_name="origin",
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The admin; empty for what happened automatically or by a command.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="by",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="big_v_changes",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "big account change",
                "verbose_name_plural": "big accounts",
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["user", "-id"], name="big_v_change_of_user")],
            },
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("code", models.CharField(max_length=32, unique=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="created"),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True, verbose_name="until")),
                ("uses", models.IntegerField(db_default=0, default=0, verbose_name="uses")),
                ("most_uses", models.IntegerField(db_default=1, default=1, verbose_name="limit")),
                ("revoked_at", models.DateTimeField(blank=True, null=True, verbose_name="revoked")),
                (
                    "made_by",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invitations",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="created by",
                    ),
                ),
            ],
            options={
                "verbose_name": "invitation",
                "verbose_name_plural": "invitations",
                "indexes": [
                    models.Index(fields=["made_by", "-id"], name="invitation_maker"),
                    models.Index(
                        condition=models.Q(("revoked_at", None), ("uses__lt", models.F("most_uses"))),
                        fields=["made_by", "-id"],
                        name="invitation_unused",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("uses__lte", models.F("most_uses"))), name="invitation_uses"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Policy",
            fields=[
                ("id", models.SmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                (
                    "push_level",
                    models.SmallIntegerField(
                        help_text="Posts of big accounts are delivered to followers at this level or above. 4: to nobody.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(4),
                        ],
                        verbose_name="push level",
                    ),
                ),
                (
                    "inbox_from",
                    models.IntegerField(
                        db_default=0,
                        default=0,
                        help_text="Readers who follow fewer people have no inbox: a query builds their pages. 0: every active reader has one.",
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(100000),
                        ],
                        verbose_name="inbox from",
                    ),
                ),
                ("generation", models.BigIntegerField(db_default=storage.draws.Draw(), editable=False)),
                ("drawn_on", models.BigIntegerField(db_default=accounts.models.Timeline(), editable=False, null=True)),
                ("timeline", models.BigIntegerField(db_default=accounts.models.Timeline(), editable=False, null=True)),
            ],
            options={
                "verbose_name": "policy",
                "verbose_name_plural": "policy",
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="policy_one_row"),
                    models.CheckConstraint(condition=models.Q(("push_level__range", (1, 4))), name="policy_push_level"),
                    models.CheckConstraint(
                        condition=models.Q(("inbox_from__range", (0, 100000))), name="policy_inbox_from"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("inbox_from", 0), ("timeline", None), _connector="OR"),
                        name="policy_for_older_versions",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Invited",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="invited",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "invitation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="invited",
                        to="accounts.invitation",
                        verbose_name="invitation",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["invitation", "user"], name="invited_invitation")],
            },
        ),
        migrations.RunSQL((SQL / "sessions.sql").read_text()),
        migrations.CreateModel(
            name="Session",
            fields=[
                (
                    "session_key",
                    models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name="session key"),
                ),
                ("session_data", models.TextField(verbose_name="session data")),
                ("expire_date", models.DateTimeField(db_index=True, verbose_name="expire date")),
                ("user_id", models.BigIntegerField(null=True)),
            ],
            options={
                "verbose_name": "session",
                "verbose_name_plural": "sessions",
                "db_table": "django_session",
                "abstract": False,
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.RunPython(seed),
        migrations.CreateModel(
            name="AddressCheck",
            fields=[
                (
                    "address",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="check_of",
                        serialize=False,
                        to="account.emailaddress",
                    ),
                ),
                ("key_digest", models.CharField(max_length=64)),
                ("code_digest", models.CharField(max_length=64)),
                ("tries", models.SmallIntegerField(db_default=0, default=0)),
                ("expires_at", models.DateTimeField(db_index=True)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="TokenOrigin",
            fields=[
                (
                    "token",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="origin",
                        serialize=False,
                        to="oauth2_provider.accesstoken",
                    ),
                ),
                ("user_agent", models.CharField(blank=True, max_length=200)),
                ("ip", models.CharField(blank=True, max_length=45)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="AppToken",
            fields=[],
            options={
                "verbose_name": "token",
                "verbose_name_plural": "tokens",
                "proxy": True,
                "default_permissions": ("view", "delete"),
                "indexes": [],
                "constraints": [],
            },
            bases=("oauth2_provider.accesstoken",),
        ),
    ]
