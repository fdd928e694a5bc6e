import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.contrib.auth.management import create_permissions
from django.db import migrations, models

# The list's version is new after every change of the rules, by any program, in the same transaction.
WORDS_SQL = """
CREATE FUNCTION moderation_words_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO moderation_wordlistversion (id, version) VALUES (1, gen_random_uuid())
    ON CONFLICT (id) DO UPDATE SET version = EXCLUDED.version;
    RETURN NULL;
END $$;
CREATE TRIGGER moderation_words_changed AFTER INSERT OR UPDATE OR DELETE ON moderation_wordrule
    FOR EACH STATEMENT EXECUTE FUNCTION moderation_words_changed();
"""
DROP_WORDS_SQL = """
DROP TRIGGER moderation_words_changed ON moderation_wordrule;
DROP FUNCTION moderation_words_changed();
"""
# The log only grows, whatever program writes to the database.
LOG_SQL = """
CREATE FUNCTION moderation_log_stands() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the log of decisions is not changed' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER moderation_log_stands BEFORE UPDATE OR DELETE ON moderation_decision
    FOR EACH ROW EXECUTE FUNCTION moderation_log_stands();
"""
DROP_LOG_SQL = """
DROP TRIGGER moderation_log_stands ON moderation_decision;
DROP FUNCTION moderation_log_stands();
"""
MODERATORS = {
    "moderation": [
        "view_case",
        "decide_case",
        "view_report",
        "view_decision",
        "view_wordrule",
        "add_wordrule",
        "change_wordrule",
        "delete_wordrule",
        "view_senderrule",
        "add_senderrule",
        "change_senderrule",
        "delete_senderrule",
    ],
    "items": ["view_item"],
    "accounts": ["view_user"],
}


def make_moderators(apps, schema_editor):
    """The group whose members work on the queue. Permissions are usually made after all migrations, so they are here."""
    for label in MODERATORS:
        config = apps.get_app_config(label)
        config.models_module = True
        create_permissions(config, apps=apps, verbosity=0, using=schema_editor.connection.alias)
        config.models_module = None
    permissions = apps.get_model("auth", "Permission").objects
    group, _ = apps.get_model("auth", "Group").objects.get_or_create(name="Moderators")
    for label, codenames in MODERATORS.items():
        group.permissions.add(*permissions.filter(content_type__app_label=label, codename__in=codenames))


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("items", "0001_initial"),
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
                        help_text="“cat” is not found in “category”. Scripts without spaces, such as Chinese, are searched anywhere.",
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
            options={"verbose_name": "word rule", "verbose_name_plural": "word rules"},
        ),
        migrations.CreateModel(
            name="Case",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("source", models.CharField(choices=[("rule", "Rule"), ("report", "Report")], max_length=8)),
                (
                    "reasons",
                    models.JSONField(
                        default=list, help_text="Why: a list of strings `code: words` (sentences.explained)."
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("open", "Open"), ("approved", "Approved"), ("rejected", "Rejected")],
                        default="open",
                        max_length=8,
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
                    "item",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="items.item"
                    ),
                ),
                ("words", models.ManyToManyField(editable=False, related_name="cases", to="moderation.wordrule")),
            ],
            options={
                "permissions": [("decide_case", "Can decide cases: approve, reject, ban and unban")],
                "default_permissions": ("view",),
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
                            ("hold", "Hold"),
                            ("approve", "Approve"),
                            ("reject", "Reject"),
                            ("ban", "Ban"),
                            ("unban", "Unban"),
                            ("list", "list a sender"),
                            ("unlist", "unlist a sender"),
                            ("word", "change a word"),
                            ("unword", "remove a word"),
                        ],
                        max_length=16,
                    ),
                ),
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
                "default_permissions": ("view",),
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
                            ("black", "black list: everything is held for review"),
                            ("white", "white list: nothing is held"),
                        ],
                        max_length=8,
                        verbose_name="list",
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
            options={"verbose_name": "sender rule", "verbose_name_plural": "sender rules"},
        ),
        migrations.CreateModel(
            name="Report",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
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
                        db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="items.item"
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
            ],
            options={
                "default_permissions": ("view",),
                "constraints": [models.UniqueConstraint(fields=("item", "reporter"), name="report_once")],
            },
        ),
        migrations.AddIndex(
            model_name="case",
            index=models.Index(condition=models.Q(("state", "open")), fields=["id"], name="case_queue"),
        ),
        migrations.AddIndex(
            model_name="case",
            index=models.Index(fields=["item", "-id"], name="case_item"),
        ),
        migrations.AddConstraint(
            model_name="case",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "open")), fields=("item",), name="case_open_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="case",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("decided_at", None), ("state", "open")),
                    models.Q(models.Q(("state", "open"), _negated=True), ("decided_at__isnull", False)),
                    _connector="OR",
                ),
                name="case_decided_when_closed",
            ),
        ),
        migrations.RunSQL(WORDS_SQL, DROP_WORDS_SQL),
        migrations.RunSQL(LOG_SQL, DROP_LOG_SQL),
        migrations.RunPython(make_moderators, migrations.RunPython.noop),
    ]
