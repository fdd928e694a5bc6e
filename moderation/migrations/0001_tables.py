from pathlib import Path

import django.core.validators
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
    initial = True

    dependencies = [
        ("accounts", "0001_users"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("live", "0001_tables"),
        ("about", "0001_tables"),
        ("items", "0001_tables"),
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("text", models.CharField(max_length=100, unique=True, verbose_name="word or phrase")),
                (
                    "whole",
                    models.BooleanField(
                        default=True,
                        help_text="“cat” won't match “category”. Text without spaces, like Chinese, matches anywhere.",
                        verbose_name="whole words only",
                    ),
                ),
                ("is_enabled", models.BooleanField(default=True, verbose_name="enabled")),
                ("note", models.CharField(blank=True, max_length=200, verbose_name="note")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="since"
                    ),
                ),
            ],
            options={
                "verbose_name": "word rule",
                "verbose_name_plural": "word rules",
            },
        ),
        migrations.CreateModel(
            name="Case",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("session_id", models.BigIntegerField(null=True)),
                (
                    "source",
                    models.CharField(
                        choices=[("rule", "a rule"), ("report", "a report"), ("hand", "a moderator")],
                        max_length=8,
                        verbose_name="source",
                    ),
                ),
                (
                    "reasons",
                    models.JSONField(
                        default=list, help_text="Why: a list of strings `code: words` (sentences.explained)."
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "open"), ("approved", "approved"), ("rejected", "rejected")],
                        default="open",
                        max_length=8,
                        verbose_name="state",
                    ),
                ),
                ("opened_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("decided_at", models.DateTimeField(null=True)),
                ("note", models.CharField(blank=True, max_length=500)),
                (
                    "decided_by",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="decided by",
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="items.item",
                    ),
                ),
                ("words", models.ManyToManyField(editable=False, related_name="cases", to="moderation.wordrule")),
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
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("item__isnull", False), ("session_id", None)),
                            models.Q(("item", None), ("session_id__isnull", False)),
                            _connector="OR",
                        ),
                        name="case_of_one",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "open")), fields=("session_id",), name="case_session_open_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PictureRule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sha256", models.CharField(editable=False, max_length=64, unique=True, verbose_name="SHA-256")),
                (
                    "phash",
                    models.BigIntegerField(editable=False, help_text="Empty: only the same file is found.", null=True),
                ),
                (
                    "action",
                    models.CharField(
                        choices=[("hold", "hold the post for review"), ("reject", "refuse the upload")],
                        max_length=8,
                        verbose_name="action",
                    ),
                ),
                (
                    "distance",
                    models.SmallIntegerField(
                        default=6,
                        help_text="From 0 (looks the same) to 10. 6 also finds it resized, recompressed, recolored or stamped.",
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(10),
                        ],
                        verbose_name="difference",
                    ),
                ),
                ("note", models.CharField(max_length=200, verbose_name="note")),
                ("is_enabled", models.BooleanField(default=True, verbose_name="enabled")),
                (
                    "medium_id",
                    models.BigIntegerField(editable=False, help_text="Where it was blocked from.", null=True),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="since"
                    ),
                ),
                ("attempts", models.IntegerField(db_default=0, default=0, editable=False, verbose_name="attempts")),
                ("last_attempt_at", models.DateTimeField(editable=False, null=True, verbose_name="last attempt")),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="by",
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("black", "always review: every post waits for a moderator"),
                            ("white", "trusted: posts are never held"),
                            ("ban", "suspended: logged out and hidden from the site"),
                        ],
                        max_length=8,
                        verbose_name="rule",
                    ),
                ),
                ("reason", models.CharField(blank=True, max_length=200, verbose_name="why")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="since"
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="by",
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="at")),
                (
                    "verb",
                    models.CharField(
                        choices=[
                            ("hold", "hold for review"),
                            ("open", "open a case"),
                            ("approve", "approve"),
                            ("reject", "reject"),
                            ("end", "end a live session"),
                            ("warn", "warn"),
                            ("ban", "suspend"),
                            ("unban", "lift a suspension"),
                            ("list", "set an account rule"),
                            ("unlist", "remove an account rule"),
                            ("word", "add or change a word"),
                            ("unword", "remove a word"),
                            ("hide", "hide pictures"),
                            ("show", "show pictures again"),
                            ("block", "block a picture"),
                            ("unblock", "unblock a picture"),
                        ],
                        max_length=16,
                        verbose_name="kind",
                    ),
                ),
                ("session_id", models.BigIntegerField(null=True)),
                ("note", models.CharField(blank=True, max_length=500, verbose_name="why")),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
                (
                    "by",
                    models.ForeignKey(
                        db_index=False,
                        help_text="Empty: the site itself, by a rule or by reports.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="by",
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="items.item"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        help_text="Whom it concerns.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("item_id", models.BigIntegerField(help_text="The item that was held.", null=True)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "rule",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("session_id", models.BigIntegerField(null=True, verbose_name="live session")),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("spam", "Spam or advertising"),
                            ("abuse", "Harassment or hate"),
                            ("violence", "Violence or threats"),
                            ("sexual", "Sexual content"),
                            ("illegal", "Against the law"),
                            ("false", "False or misleading"),
                            ("other", "Something else"),
                        ],
                        max_length=16,
                        verbose_name="why",
                    ),
                ),
                ("text", models.CharField(blank=True, max_length=500, verbose_name="words")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="at"),
                ),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reports",
                        to="moderation.case",
                        verbose_name="case",
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="items.item",
                        verbose_name="post",
                    ),
                ),
                (
                    "reporter",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="reported by",
                    ),
                ),
                (
                    "rule",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="about.rule",
                        verbose_name="rule",
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
                            models.Q(("item__isnull", False), ("session_id", None)),
                            models.Q(("item", None), ("session_id__isnull", False)),
                            _connector="OR",
                        ),
                        name="report_of_one",
                    ),
                ],
            },
        ),
        migrations.RunSQL((SQL / "word_list.sql").read_text()),
        migrations.RunSQL((SQL / "log.sql").read_text()),
        migrations.RunPython(make_moderators),
    ]
