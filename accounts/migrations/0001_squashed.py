"""Users and apps, because tables of django-oauth-toolkit refer to them."""

from pathlib import Path

import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
import oauth2_provider.generators
import oauth2_provider.models
from django.conf import settings
from django.db import migrations, models

import accounts.lookalikes
import accounts.models
import accounts.names
import storage.draws

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):
    replaces = [
        ("accounts", "0001_users"),
        ("accounts", "0003_folded_names"),
        ("accounts", "0004_profile_fields"),
        ("accounts", "0005_followed_tags"),
        ("accounts", "0006_quotes"),
        ("accounts", "0007_message_requests"),
    ]

    initial = True

    run_before = [("oauth2_provider", "0001_initial")]  # its tables refer to ClientApp

    dependencies = [("feedsite", "0001_squashed"), ("auth", "0012_alter_user_first_name_max_length")]

    operations = [
        migrations.RunSQL((SQL / "names.sql").read_text()),
        migrations.RunSQL((SQL / "lookalikes.sql").read_text()),
        migrations.CreateModel(
            name="User",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("password", models.CharField(max_length=128)),
                ("last_login", models.DateTimeField(null=True)),
                ("is_superuser", models.BooleanField(default=False)),
                ("username", models.CharField(max_length=30, unique=True)),
                ("display_name", models.CharField(max_length=50)),
                ("bio", models.CharField(max_length=500)),
                ("email", models.EmailField(max_length=254)),
                ("language", models.CharField(db_default="", default="", max_length=10)),
                ("time_zone", models.CharField(db_default="", default="", max_length=64)),
                ("avatar", models.JSONField(null=True)),
                ("banner", models.JSONField(null=True)),
                ("keeps_history", models.BooleanField(db_default=True, default=True)),
                ("dismissed_announcement", models.CharField(db_default="", default="", max_length=16)),
                ("is_indexable", models.BooleanField(db_default=True, default=True)),
                ("is_locked", models.BooleanField(db_default=False, default=False)),
                ("is_big_v", models.BooleanField(default=False)),
                ("is_auto_big_v", models.BooleanField(db_default=True, default=True)),
                ("level", models.SmallIntegerField(default=0)),
                ("last_seen_at", models.DateTimeField(null=True)),
                ("window_epoch", models.BigIntegerField(db_default=storage.draws.Draw())),
                ("push_generation", models.IntegerField(db_default=1, default=1)),
                ("promotion", models.BigIntegerField(db_default=0, default=0)),
                ("following_count", models.IntegerField(default=0)),
                ("follower_count", models.IntegerField(default=0)),
                ("is_staff", models.BooleanField(default=False)),
                ("is_active", models.BooleanField(default=True)),
                ("deleted_at", models.DateTimeField(null=True)),
                ("session_epoch", models.IntegerField(db_default=0, default=0)),
                ("session_generation", models.BigIntegerField(db_default=0, default=0)),
                ("filters_version", models.BigIntegerField(db_default=0, default=0)),
                ("date_joined", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("groups", models.ManyToManyField(related_query_name="user", to="auth.group")),
                (
                    "user_permissions",
                    models.ManyToManyField(related_query_name="user", to="auth.permission"),
                ),
                ("folded_name", accounts.names.FoldedName(editable=False, null=True)),
                ("profile_fields", models.JSONField(db_default=[], default=list)),
                ("followed_tag_count", models.SmallIntegerField(db_default=0, default=0)),
                ("quotable_by", models.CharField(db_default="everyone", default="everyone", max_length=16)),
                ("takes_requests", models.BooleanField(db_default=True, default=True)),
            ],
            options={
                "verbose_name": "user",
                "verbose_name_plural": "users",
                "indexes": [
                    models.Index(condition=models.Q(("is_big_v", True)), fields=["id"], name="user_big_v"),
                    models.Index(condition=models.Q(("is_active", False)), fields=["id"], name="user_inactive"),
                    models.Index(condition=models.Q(("is_superuser", True)), fields=["id"], name="user_superuser"),
                    models.Index(fields=["level", "last_seen_at"], name="user_level_seen"),
                    models.Index(condition=models.Q(("level__gt", 0)), fields=["id"], name="user_awake"),
                    models.Index(
                        condition=models.Q(("is_active", True)),
                        fields=["-follower_count", "id"],
                        name="user_most_followed",
                    ),
                    models.Index(fields=["-follower_count", "-id"], name="user_by_followers"),
                    models.Index(
                        django.db.models.functions.text.Lower("email"),
                        condition=models.Q(("email", ""), _negated=True),
                        name="user_email",
                    ),
                    django.contrib.postgres.indexes.GinIndex(
                        models.Func(
                            models.Func("username", "display_name", function="feedsite_name"), function="feedsite_grams"
                        ),
                        name="user_names",
                    ),
                    models.Index(accounts.lookalikes.Skeleton("username"), name="user_skeleton"),
                    django.contrib.postgres.indexes.GinIndex(
                        models.Func("folded_name", function="feedsite_grams"),
                        condition=models.Q(("folded_name__isnull", False)),
                        name="user_folded_names",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("username"),
                        name="user_lower_username",
                        violation_error_message="This username is taken.",
                    ),
                    models.CheckConstraint(condition=models.Q(("level__range", (0, 3))), name="user_level"),
                    models.CheckConstraint(
                        condition=models.Q(("deleted_at", None), ("is_active", False), _connector="OR"),
                        name="user_deleted_for_good",
                    ),
                ],
            },
            managers=[
                ("objects", accounts.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name="ClientApp",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "client_id",
                    models.CharField(
                        db_index=True,
                        default=oauth2_provider.generators.generate_client_id,
                        max_length=255,
                        unique=True,
                    ),
                ),
                ("redirect_uris", models.TextField()),
                ("post_logout_redirect_uris", models.TextField(default="")),
                ("client_type", models.CharField(max_length=32)),
                ("authorization_grant_type", models.CharField(max_length=44)),
                (
                    "client_secret",
                    oauth2_provider.models.ClientSecretField(
                        db_index=True, default=oauth2_provider.generators.generate_client_secret, max_length=255
                    ),
                ),
                ("hash_client_secret", models.BooleanField(default=True)),
                ("name", models.CharField(max_length=255)),
                ("skip_authorization", models.BooleanField(default=False)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("updated", models.DateTimeField(auto_now=True)),
                ("algorithm", models.CharField(default="", max_length=5)),
                ("allowed_origins", models.TextField(default="")),
                ("registration_source", models.CharField(default="manual", max_length=32)),
                ("cimd_expires_at", models.DateTimeField(default=None, null=True)),
                ("website", models.CharField(db_default="", default="", max_length=2000)),
                ("scopes", models.CharField(db_default="read", default="read", max_length=1000)),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "app",
                "verbose_name_plural": "apps",
                "default_permissions": ("view", "delete"),
                "indexes": [models.Index(fields=["created"], name="client_app_age")],
            },
        ),
    ]
