"""Users and apps, because tables of allauth and django-oauth-toolkit refer to them."""

from pathlib import Path

import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
import oauth2_provider.generators
import oauth2_provider.models
from django.conf import settings
from django.db import migrations, models

import accounts.lookalikes
import accounts.models
import accounts.naming
import storage.draws

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):
    initial = True

    run_before = [("oauth2_provider", "0001_initial")]  # its tables refer to ClientApp

    dependencies = [
        ("feedsite", "0001_functions"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.RunSQL((SQL / "names.sql").read_text()),
        migrations.RunSQL((SQL / "lookalikes.sql").read_text()),
        migrations.CreateModel(
            name="User",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        error_messages={"unique": "This username is taken."},
                        max_length=30,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Za-z0-9_-]{1,30}\\Z",
                                "1 to 30 letters (a to z), digits, hyphens or underscores.",
                                code="invalid",
                            ),
                            accounts.models.not_reserved,
                        ],
                        verbose_name="username",
                    ),
                ),
                (
                    "display_name",
                    models.CharField(
                        blank=True,
                        max_length=50,
                        validators=[accounts.naming.check_display_name],
                        verbose_name="display name",
                    ),
                ),
                ("bio", models.CharField(blank=True, max_length=500, verbose_name="bio")),
                ("email", models.EmailField(blank=True, max_length=254, verbose_name="email")),
                (
                    "language",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Of settings.LANGUAGES; empty: the browser's.",
                        max_length=10,
                        verbose_name="language",
                    ),
                ),
                (
                    "time_zone",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="An IANA name; empty: the browser's.",
                        max_length=64,
                        verbose_name="time zone",
                    ),
                ),
                (
                    "avatar",
                    models.JSONField(editable=False, help_text="The facts of a picture (media.objects).", null=True),
                ),
                ("banner", models.JSONField(editable=False, help_text="The same.", null=True)),
                (
                    "keeps_history",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="Whether what the user opens is remembered for a while.",
                    ),
                ),
                (
                    "dismissed_announcement",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        help_text="The announcement that an app has shown the user (accounts.about.announcing.mark).",
                        max_length=16,
                    ),
                ),
                (
                    "is_indexable",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="Whether search engines may list the profile and its posts.",
                    ),
                ),
                (
                    "is_locked",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="They approve each new follower.",
                        verbose_name="approves followers",
                    ),
                ),
                ("is_big_v", models.BooleanField(default=False, verbose_name="big account")),
                (
                    "is_auto_big_v",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        editable=False,
                        help_text="Whether reaching the threshold makes the user big-V. A demotion by hand turns it off.",
                        verbose_name="becomes big automatically",
                    ),
                ),
                (
                    "level",
                    models.SmallIntegerField(
                        choices=[(0, "dormant"), (1, "within a month"), (2, "within a week"), (3, "within a day")],
                        default=0,
                        verbose_name="level",
                    ),
                ),
                ("last_seen_at", models.DateTimeField(blank=True, null=True, verbose_name="last seen")),
                ("window_epoch", models.BigIntegerField(db_default=storage.draws.Draw(), editable=False)),
                (
                    "push_generation",
                    models.IntegerField(
                        db_default=1, default=1, editable=False, help_text="Advanced by every lowering of the level."
                    ),
                ),
                (
                    "promotion",
                    models.BigIntegerField(
                        db_default=0, default=0, editable=False, help_text="Drawn whenever the user becomes big-V."
                    ),
                ),
                ("following_count", models.IntegerField(default=0, editable=False, verbose_name="following")),
                ("follower_count", models.IntegerField(default=0, editable=False, verbose_name="followers")),
                ("is_staff", models.BooleanField(default=False, verbose_name="staff")),
                ("is_active", models.BooleanField(default=True, verbose_name="active")),
                ("deleted_at", models.DateTimeField(blank=True, editable=False, null=True, verbose_name="deleted")),
                ("session_epoch", models.IntegerField(db_default=0, default=0, editable=False)),
                ("session_generation", models.BigIntegerField(db_default=0, default=0, editable=False)),
                (
                    "filters_version",
                    models.BigIntegerField(
                        db_default=0,
                        default=0,
                        editable=False,
                        help_text="Drawn by every change of the user's filters; 0 without any.",
                    ),
                ),
                (
                    "date_joined",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="joined"),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
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
                        verbose_name="client ID",
                    ),
                ),
                (
                    "redirect_uris",
                    models.TextField(
                        blank=True, help_text="Allowed URIs list, space separated", verbose_name="redirect URIs"
                    ),
                ),
                (
                    "post_logout_redirect_uris",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="Allowed Post Logout URIs list, space separated",
                        verbose_name="post logout redirect URIs",
                    ),
                ),
                (
                    "client_type",
                    models.CharField(
                        choices=[("confidential", "Confidential"), ("public", "Public")],
                        max_length=32,
                        verbose_name="client type",
                    ),
                ),
                (
                    "authorization_grant_type",
                    models.CharField(
                        choices=[
                            ("authorization-code", "Authorization code"),
                            ("urn:ietf:params:oauth:grant-type:device_code", "Device Code"),
                            ("implicit", "Implicit"),
                            ("password", "Resource owner password-based"),
                            ("client-credentials", "Client credentials"),
                            ("openid-hybrid", "OpenID connect hybrid"),
                        ],
                        max_length=44,
                        verbose_name="authorization grant type",
                    ),
                ),
                (
                    "client_secret",
                    oauth2_provider.models.ClientSecretField(
                        blank=True,
                        db_index=True,
                        default=oauth2_provider.generators.generate_client_secret,
                        help_text="Client secret for authentication",
                        max_length=255,
                        verbose_name="client secret",
                    ),
                ),
                ("hash_client_secret", models.BooleanField(default=True, verbose_name="hash client secret")),
                ("name", models.CharField(blank=True, max_length=255, verbose_name="name")),
                ("skip_authorization", models.BooleanField(default=False, verbose_name="skip authorization")),
                ("created", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("updated", models.DateTimeField(auto_now=True, verbose_name="updated")),
                (
                    "algorithm",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "No OIDC support"),
                            ("RS256", "RSA with SHA-2 256"),
                            ("HS256", "HMAC with SHA-2 256"),
                        ],
                        default="",
                        max_length=5,
                        verbose_name="algorithm",
                    ),
                ),
                (
                    "allowed_origins",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="Allowed origins list to enable CORS, space separated",
                        verbose_name="allowed origins",
                    ),
                ),
                (
                    "registration_source",
                    models.CharField(
                        choices=[
                            ("manual", "Manual"),
                            ("dcr", "Dynamic Client Registration"),
                            ("cimd", "Client ID Metadata Document"),
                        ],
                        default="manual",
                        help_text="How this application was registered (manual, DCR per RFC 7591, or CIMD)",
                        max_length=32,
                        verbose_name="registration source",
                    ),
                ),
                (
                    "cimd_expires_at",
                    models.DateTimeField(
                        blank=True,
                        default=None,
                        help_text="When the cached Client ID Metadata Document should be re-fetched",
                        null=True,
                        verbose_name="CIMD expires at",
                    ),
                ),
                (
                    "website",
                    models.CharField(blank=True, db_default="", default="", max_length=2000, verbose_name="website"),
                ),
                ("scopes", models.CharField(db_default="read", default="read", max_length=1000, verbose_name="scopes")),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="%(app_label)s_%(class)s",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
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
