"""Names of models and fields for people; nothing in the database changes."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import items.models


class Migration(migrations.Migration):
    dependencies = [
        ("live", "0010_reviewed_hidden"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="livesession",
            options={"verbose_name": "live session", "verbose_name_plural": "live sessions"},
        ),
        migrations.AlterModelOptions(
            name="replaydelivery",
            options={"verbose_name": "delivery of a replay", "verbose_name_plural": "deliveries of replays"},
        ),
        migrations.AlterField(
            model_name="livesession",
            name="automatic",
            field=models.BooleanField(default=False, verbose_name="automatic"),
        ),
        migrations.AlterField(
            model_name="livesession",
            name="cover_url",
            field=models.URLField(blank=True, help_text="A picture; https.", max_length=2000, verbose_name="cover"),
        ),
        migrations.AlterField(
            model_name="livesession",
            name="ended_at",
            field=models.DateTimeField(blank=True, null=True, verbose_name="ended"),
        ),
        migrations.AlterField(
            model_name="livesession",
            name="hidden_at",
            field=models.DateTimeField(blank=True, null=True, verbose_name="hidden since"),
        ),
        migrations.AlterField(
            model_name="livesession",
            name="host",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="live_sessions",
                to=settings.AUTH_USER_MODEL,
                verbose_name="host",
            ),
        ),
        migrations.AlterField(
            model_name="livesession",
            name="minutes",
            field=models.PositiveSmallIntegerField(
                default=60, help_text="How long an automatic session lasts.", verbose_name="minutes"
            ),
        ),
        migrations.AlterField(
            model_name="livesession",
            name="modified_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(), verbose_name="last changed"
            ),
        ),
        migrations.AlterField(
            model_name="livesession",
            name="review",
            field=models.CharField(
                blank=True,
                choices=[("in_review", "in review"), ("rejected", "rejected")],
                db_default="",
                default="",
                max_length=16,
                verbose_name="moderation",
            ),
        ),
        migrations.AlterField(
            model_name="livesession",
            name="started_at",
            field=models.DateTimeField(blank=True, null=True, verbose_name="started"),
        ),
        migrations.AlterField(
            model_name="livesession",
            name="starts_at",
            field=models.DateTimeField(verbose_name="planned for"),
        ),
        migrations.AlterField(
            model_name="livesession",
            name="state",
            field=models.CharField(
                choices=[
                    ("upcoming", "upcoming"),
                    ("live", "live"),
                    ("replay", "replay"),
                    ("cancelled", "cancelled"),
                    ("missed", "missed"),
                ],
                default="upcoming",
                max_length=16,
                verbose_name="state",
            ),
        ),
        migrations.AlterField(
            model_name="livesession",
            name="title",
            field=models.CharField(max_length=200, verbose_name="title"),
        ),
        migrations.AlterField(
            model_name="livesession",
            name="url",
            field=models.URLField(
                blank=True, help_text="Where it is watched; https.", max_length=2000, verbose_name="address"
            ),
        ),
        migrations.AlterField(
            model_name="livesession",
            name="worded_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="words of"
            ),
        ),
        migrations.AlterField(
            model_name="replaydelivery",
            name="attempts",
            field=models.IntegerField(
                default=0,
                help_text="Fan-outs begun; counted before the work, so that a kill counts.",
                verbose_name="attempts",
            ),
        ),
        migrations.AlterField(
            model_name="replaydelivery",
            name="created_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="since"),
        ),
        migrations.AlterField(
            model_name="replaydelivery",
            name="host",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
                verbose_name="host",
            ),
        ),
        migrations.AlterField(
            model_name="replaydelivery",
            name="last_error",
            field=models.TextField(blank=True, verbose_name="last error"),
        ),
        migrations.AlterField(
            model_name="replaydelivery",
            name="parked_at",
            field=models.DateTimeField(blank=True, null=True, verbose_name="given up"),
        ),
        migrations.AlterField(
            model_name="replaydelivery",
            name="session",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                primary_key=True,
                related_name="delivery",
                serialize=False,
                to="live.livesession",
                verbose_name="replay",
            ),
        ),
        migrations.AlterField(
            model_name="replaydelivery",
            name="sweep_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(),
                db_index=True,
                help_text="When the sweeper enqueues it again.",
                verbose_name="tried again",
            ),
        ),
        migrations.AlterField(
            model_name="livesession",
            name="id",
            field=models.BigIntegerField(
                db_default=items.models.ItemId(), editable=False, primary_key=True, serialize=False, verbose_name="ID"
            ),
        ),
    ]
