from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.contrib.auth.management import create_permissions
from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


MODERATORS = {
    "accounts": ["view_user"],
    "items": ["view_item"],
    "live": ["view_livesession"],
    "moderation": [
        "view_case",
        "decide_case",
        "view_report",
        "view_decision",
        *(
            f"{verb}_{rule}"
            for rule in ("wordrule", "senderrule", "picturerule")
            for verb in ("view", "add", "change", "delete")
        ),
    ],
}


def make_moderators(apps, schema_editor):
    """Django creates permissions only after all migrations."""
    for label in MODERATORS:
        config = apps.get_app_config(label)
        config.models_module = True
        create_permissions(config, apps=apps, verbosity=0, using=schema_editor.connection.alias)
        config.models_module = None
    permissions = apps.get_model("auth", "Permission").objects
    group = apps.get_model("auth", "Group").objects.create(name="Moderators")
    for label, codenames in MODERATORS.items():
        group.permissions.add(*permissions.filter(content_type__app_label=label, codename__in=codenames))


class Migration(migrations.Migration):
    replaces = [
        ("moderation", "0001_tables"),
        ("moderation", "0002_link_cards"),
        ("moderation", "0003_account_reports"),
        ("moderation", "0004_readings"),
    ]

    initial = True

    dependencies = [
        ("accounts", "0001_squashed"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("live", "0001_tables"),
        ("about", "0001_squashed"),
        ("items", "0001_squashed"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="WordListVersion",
            fields=[
                ("id", models.SmallIntegerField(primary_key=True, serialize=False)),
                ("version", models.UUIDField()),
            ],
        ),
        migrations.CreateModel(
            name="WordRule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("text", models.CharField(max_length=100, unique=True)),
                ("whole", models.BooleanField(default=True)),
                ("is_enabled", models.BooleanField(default=True)),
                ("note", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "verbose_name": "word rule",
                "verbose_name_plural": "word rules",
            },
        ),
        migrations.CreateModel(
            name="Case",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("session_id", models.BigIntegerField(null=True)),
                ("source", models.CharField(max_length=8)),
                ("reasons", models.JSONField(default=list)),
                ("state", models.CharField(default="open", max_length=8)),
                ("opened_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("decided_at", models.DateTimeField(null=True)),
                ("note", models.CharField(max_length=500)),
                (
                    "decided_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="items.item",
                    ),
                ),
                ("words", models.ManyToManyField(to="moderation.wordrule")),
            ],
            options={
                "verbose_name": "case",
                "verbose_name_plural": "cases",
                "permissions": [("decide_case", "Can decide cases: approve, reject, ban and unban")],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(condition=models.Q(("state", "open")), fields=["id"], name="case_queue"),
                    models.Index(fields=["item", "-id"], name="case_item"),
                    models.Index(fields=["host", "-id"], name="case_author"),
                    models.Index(
                        condition=models.Q(("session_id__isnull", False)),
                        fields=["session_id", "-id"],
                        name="case_session",
                    ),
                    models.Index(
                        condition=models.Q(("item", None), ("session_id", None), ("state", "open")),
                        fields=["host"],
                        name="case_account",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "open")), fields=("item",), name="case_open_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("decided_at", None), ("state", "open")),
                            models.Q(models.Q(("state", "open"), _negated=True), ("decided_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="case_decided_when_closed",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "open")), fields=("session_id",), name="case_session_open_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("item__isnull", False), ("session_id", None)),
                            models.Q(("item", None), ("session_id__isnull", False)),
                            models.Q(("item", None), ("session_id", None), ("host__isnull", False)),
                            _connector="OR",
                        ),
                        name="case_of_one",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PictureRule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("sha256", models.CharField(max_length=64, unique=True)),
                ("phash", models.BigIntegerField(null=True)),
                ("action", models.CharField(max_length=8)),
                ("distance", models.SmallIntegerField(default=6)),
                ("note", models.CharField(max_length=200)),
                ("is_enabled", models.BooleanField(default=True)),
                ("medium_id", models.BigIntegerField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("attempts", models.IntegerField(db_default=0, default=0)),
                ("last_attempt_at", models.DateTimeField(null=True)),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "blocked picture",
                "verbose_name_plural": "blocked pictures",
            },
        ),
        migrations.CreateModel(
            name="SenderRule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=8)),
                ("reason", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
                ),
            ],
            options={
                "verbose_name": "account rule",
                "verbose_name_plural": "account rules",
            },
        ),
        migrations.CreateModel(
            name="Decision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("verb", models.CharField(max_length=16)),
                ("session_id", models.BigIntegerField(null=True)),
                ("note", models.CharField(max_length=500)),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
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
                    "item",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to="items.item"),
                ),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "decision",
                "verbose_name_plural": "decisions",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("item", None), ("session_id", None)),
                        fields=["user", "-id"],
                        name="decision_of_user",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PictureAttempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("item_id", models.BigIntegerField(null=True)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "user",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
                ),
                (
                    "rule",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="moderation.picturerule",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["rule", "-id"], name="attempt_of_rule"),
                    models.Index(fields=["at"], name="attempt_age"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Report",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("session_id", models.BigIntegerField(null=True)),
                ("reason", models.CharField(max_length=16)),
                ("text", models.CharField(max_length=500)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "case",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="moderation.case"),
                ),
                (
                    "item",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="items.item",
                    ),
                ),
                (
                    "reporter",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
                ),
                (
                    "rule",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="about.rule",
                    ),
                ),
                (
                    "account",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "report",
                "verbose_name_plural": "reports",
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(fields=("item", "reporter"), name="report_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("session_id__isnull", False)),
                        fields=("session_id", "reporter"),
                        name="report_session_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                models.Q(
                                    models.Q(("item__isnull", False), ("session_id", None)),
                                    models.Q(("item", None), ("session_id__isnull", False)),
                                    _connector="OR",
                                ),
                                ("account", None),
                            ),
                            models.Q(("item", None), ("session_id", None), ("account__isnull", False)),
                            _connector="OR",
                        ),
                        name="report_of_one",
                    ),
                ],
                "indexes": [
                    models.Index(
                        condition=models.Q(("account__isnull", False)),
                        fields=["account", "reporter"],
                        name="report_account",
                    )
                ],
            },
        ),
        migrations.RunSQL((SQL / "word_list.sql").read_text()),
        migrations.RunSQL((SQL / "log.sql").read_text()),
        migrations.RunPython(make_moderators),
    ]
