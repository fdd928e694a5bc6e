"""A ban is a rule of its sender; and names for people."""

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
                "verbose_name_plural": "decisions",
            },
        ),
        migrations.AlterModelOptions(
            name="report",
            options={"default_permissions": ("view",), "verbose_name": "report", "verbose_name_plural": "reports"},
        ),
        migrations.AlterField(
            model_name="case",
            name="source",
            field=models.CharField(
                choices=[("rule", "a rule"), ("report", "a report"), ("hand", "a moderator")],
                max_length=8,
                verbose_name="source",
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
        migrations.RunSQL(BANS, BLACK),
    ]
