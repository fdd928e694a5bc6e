"""The history of big-Vs, and whether a user is tagged automatically."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0013_inbox_from"),
    ]

    operations = [
        migrations.CreateModel(
            name="BigVChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="at")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("made", "made big-V"),
                            ("demotion", "demotion asked for"),
                            ("taken_back", "demotion taken back"),
                            ("demoted", "demoted: the followers' inboxes are filled"),
                            ("allowed", "automatic tagging allowed again"),
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
            ],
            options={
                "verbose_name": "change of a big-V",
                "verbose_name_plural": "changes of big-Vs",
                "default_permissions": ("view",),
            },
        ),
        migrations.AddField(
            model_name="user",
            name="is_auto_big_v",
            field=models.BooleanField(
                db_default=True,
                default=True,
                editable=False,
                help_text="Whether reaching the threshold makes the user big-V. A demotion by hand turns it off.",
                verbose_name="tagged automatically",
            ),
        ),
        migrations.AddField(
            model_name="bigvchange",
            name="by",
            field=models.ForeignKey(
                db_index=False,
                help_text="The admin; empty for what happened automatically or by a command.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
                verbose_name="by",
            ),
        ),
        migrations.AddField(
            model_name="bigvchange",
            name="user",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="big_v_changes",
                to=settings.AUTH_USER_MODEL,
                verbose_name="user",
            ),
        ),
        migrations.AddIndex(
            model_name="bigvchange",
            index=models.Index(fields=["user", "-id"], name="big_v_change_of_user"),
        ),
    ]
