"""A ban is a rule of its sender; and names for people."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

# Until now a ban was an entry of the black list of somebody inactive, and the account was stranded where the entry was
# deleted. The newest ban or end of a ban in the log says who is banned.
BANS = """
    INSERT INTO moderation_senderrule (user_id, kind, reason, by_id)
    SELECT u.id, 'ban', left(newest.note, 200), newest.by_id FROM accounts_user u
    CROSS JOIN LATERAL (
        SELECT verb, note, by_id FROM moderation_decision d
        WHERE d.user_id = u.id AND d.verb IN ('ban', 'unban') ORDER BY d.id DESC LIMIT 1
    ) newest
    WHERE NOT u.is_active AND u.deleted_at IS NULL AND newest.verb = 'ban'
    ON CONFLICT (user_id) DO UPDATE SET kind = 'ban'
"""
BLACK = "UPDATE moderation_senderrule SET kind = 'black' WHERE kind = 'ban'"


class Migration(migrations.Migration):
    dependencies = [
        ("items", "0007_labels"),
        ("moderation", "0003_review_indexes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="case",
            options={
                "default_permissions": ("view",),
                "permissions": [("decide_case", "Can decide cases: approve, reject, ban and unban")],
                "verbose_name": "case",
                "verbose_name_plural": "cases",
            },
        ),
        migrations.AlterModelOptions(
            name="decision",
            options={
                "default_permissions": ("view",),
                "verbose_name": "decision",
                "verbose_name_plural": "log of decisions",
            },
        ),
        migrations.AlterModelOptions(
            name="report",
            options={"default_permissions": ("view",), "verbose_name": "report", "verbose_name_plural": "reports"},
        ),
        migrations.AlterModelOptions(
            name="senderrule",
            options={"verbose_name": "sender rule", "verbose_name_plural": "sender rules"},
        ),
        migrations.AlterModelOptions(
            name="wordrule",
            options={"verbose_name": "word rule", "verbose_name_plural": "word rules"},
        ),
        migrations.AlterField(
            model_name="case",
            name="decided_by",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
                verbose_name="decided by",
            ),
        ),
        migrations.AlterField(
            model_name="case",
            name="reasons",
            field=models.JSONField(default=list, help_text="Why: a list of strings `code: words` (rules.explained)."),
        ),
        migrations.AlterField(
            model_name="case",
            name="source",
            field=models.CharField(
                choices=[("rule", "a rule"), ("report", "a report"), ("hand", "a moderator")],
                max_length=8,
                verbose_name="opened by",
            ),
        ),
        migrations.AlterField(
            model_name="case",
            name="state",
            field=models.CharField(
                choices=[("open", "open"), ("approved", "approved"), ("rejected", "rejected")],
                default="open",
                max_length=8,
                verbose_name="state",
            ),
        ),
        migrations.AlterField(
            model_name="decision",
            name="at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="at"),
        ),
        migrations.AlterField(
            model_name="decision",
            name="by",
            field=models.ForeignKey(
                db_index=False,
                help_text="Empty: the site itself, by a rule or by reports.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
                verbose_name="by",
            ),
        ),
        migrations.AlterField(
            model_name="decision",
            name="note",
            field=models.CharField(blank=True, max_length=500, verbose_name="why"),
        ),
        migrations.AlterField(
            model_name="decision",
            name="verb",
            field=models.CharField(
                choices=[
                    ("hold", "hold for review"),
                    ("open", "open a case"),
                    ("approve", "approve"),
                    ("reject", "reject"),
                    ("end", "end a live session"),
                    ("warn", "warn"),
                    ("ban", "ban"),
                    ("unban", "lift a ban"),
                    ("list", "put on a list"),
                    ("unlist", "take off a list"),
                    ("word", "add or change a word"),
                    ("unword", "remove a word"),
                ],
                max_length=16,
                verbose_name="kind",
            ),
        ),
        migrations.AlterField(
            model_name="report",
            name="case",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="reports",
                to="moderation.case",
                verbose_name="case",
            ),
        ),
        migrations.AlterField(
            model_name="report",
            name="created_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="at"),
        ),
        migrations.AlterField(
            model_name="report",
            name="item",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="items.item",
                verbose_name="item",
            ),
        ),
        migrations.AlterField(
            model_name="report",
            name="reason",
            field=models.CharField(
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
        migrations.AlterField(
            model_name="report",
            name="reporter",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
                verbose_name="reported by",
            ),
        ),
        migrations.AlterField(
            model_name="report",
            name="session_id",
            field=models.BigIntegerField(null=True, verbose_name="live session"),
        ),
        migrations.AlterField(
            model_name="report",
            name="text",
            field=models.CharField(blank=True, max_length=500, verbose_name="words"),
        ),
        migrations.AlterField(
            model_name="senderrule",
            name="by",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
                verbose_name="by",
            ),
        ),
        migrations.AlterField(
            model_name="senderrule",
            name="created_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="since"
            ),
        ),
        migrations.AlterField(
            model_name="senderrule",
            name="kind",
            field=models.CharField(
                choices=[
                    ("black", "black list: everything is held for review"),
                    ("white", "white list: nothing is held"),
                    ("ban", "banned: signed out, and gone from the site"),
                ],
                max_length=8,
                verbose_name="rule",
            ),
        ),
        migrations.AlterField(
            model_name="senderrule",
            name="reason",
            field=models.CharField(blank=True, max_length=200, verbose_name="why"),
        ),
        migrations.AlterField(
            model_name="senderrule",
            name="user",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
                verbose_name="user",
            ),
        ),
        migrations.AlterField(
            model_name="wordrule",
            name="created_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="since"
            ),
        ),
        migrations.AlterField(
            model_name="wordrule",
            name="note",
            field=models.CharField(blank=True, max_length=200, verbose_name="note"),
        ),
        migrations.RunSQL(BANS, BLACK),
    ]
