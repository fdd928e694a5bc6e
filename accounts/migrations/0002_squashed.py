"""All other tables. Some refer to tables of django-oauth-toolkit. allauth made three in older databases."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
import django.utils.timezone
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
    replaces = [
        ("accounts", "0002_tables"),
        ("accounts", "0008_token_codes"),
        ("account", "0009_emailaddress_unique_primary_email"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("usersessions", "0001_initial"),
    ]

    dependencies = [
        ("accounts", "0001_squashed"),
        ("oauth2_provider", "0022_refreshtoken_token_family_index"),
        ("sessions", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL((SQL / "policy.sql").read_text()),
        migrations.RunSQL((SQL / "sessions.sql").read_text()),
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("asked", models.CharField(max_length=254)),
                ("language", models.CharField(max_length=10)),
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
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("tried_at", models.DateTimeField(null=True)),
                ("attempts", models.IntegerField(default=0)),
            ],
            options={
                "verbose_name": "account deletion",
                "verbose_name_plural": "account deletions",
            },
        ),
        migrations.CreateModel(
            name="Application",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("username", models.CharField(max_length=30)),
                ("display_name", models.CharField(max_length=50)),
                ("password", models.CharField(max_length=128)),
                ("email", models.EmailField(max_length=254)),
                ("language", models.CharField(max_length=10)),
                ("reason", models.TextField(max_length=1000)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), db_index=True),
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("kind", models.CharField(max_length=16)),
                ("origin", models.CharField(max_length=16)),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to=settings.AUTH_USER_MODEL,
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
                "verbose_name": "big account change",
                "verbose_name_plural": "big accounts",
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["user", "-id"], name="big_v_change_of_user")],
            },
        ),
        migrations.CreateModel(
            name="Invitation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("code", models.CharField(max_length=32, unique=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField(null=True)),
                ("uses", models.IntegerField(db_default=0, default=0)),
                ("most_uses", models.IntegerField(db_default=1, default=1)),
                ("revoked_at", models.DateTimeField(null=True)),
                (
                    "made_by",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
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
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("push_level", models.SmallIntegerField()),
                ("inbox_from", models.IntegerField(db_default=0, default=0)),
                ("generation", models.BigIntegerField(db_default=storage.draws.Draw())),
                ("drawn_on", models.BigIntegerField(db_default=accounts.models.Timeline(), null=True)),
                ("timeline", models.BigIntegerField(db_default=accounts.models.Timeline(), null=True)),
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
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "invitation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="accounts.invitation",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["invitation", "user"], name="invited_invitation")],
            },
        ),
        migrations.CreateModel(
            name="Session",
            fields=[
                ("session_key", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("session_data", models.TextField()),
                ("expire_date", models.DateTimeField(db_index=True)),
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
        migrations.CreateModel(
            name="SessionOrigin",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("ip", models.GenericIPAddressField()),
                ("last_seen_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("session_key", models.CharField(max_length=40, unique=True)),
                ("user_agent", models.CharField(max_length=200)),
                ("data", models.JSONField(default=dict)),
                (
                    "user",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
                ),
            ],
            options={"db_table": "usersessions_usersession", "default_permissions": ()},
        ),
        migrations.CreateModel(
            name="Authenticator",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("type", models.CharField(max_length=20)),
                ("data", models.JSONField()),
                (
                    "user",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("last_used_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "mfa_authenticator",
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("type__in", ("totp", "recovery_codes"))),
                        fields=("user", "type"),
                        name="unique_authenticator_type",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="EmailAddress",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("email", models.EmailField(db_index=True, max_length=254)),
                ("verified", models.BooleanField(default=False)),
                ("primary", models.BooleanField(default=False)),
                (
                    "user",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
                ),
            ],
            options={
                "db_table": "account_emailaddress",
                "default_permissions": (),
                "unique_together": {("user", "email")},
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("verified", True)), fields=("email",), name="unique_verified_email"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("primary", True)), fields=("user", "primary"), name="unique_primary_email"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AddressCheck",
            fields=[
                (
                    "address",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="accounts.emailaddress",
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
                        serialize=False,
                        to="oauth2_provider.accesstoken",
                    ),
                ),
                ("user_agent", models.CharField(max_length=200)),
                ("ip", models.CharField(max_length=45)),
                ("code_digest", models.CharField(max_length=64, null=True)),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(("code_digest__isnull", False)), fields=["code_digest"], name="token_code"
                    )
                ],
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
            },
            bases=("oauth2_provider.accesstoken",),
        ),
        migrations.RunPython(seed),
    ]
