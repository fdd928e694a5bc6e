"""Names of models and fields for people; nothing in the database changes."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("items", "0007_labels"),
        ("timeline", "0004_lease"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="backfill",
            options={"verbose_name": "demotion of a big-V", "verbose_name_plural": "demotions of big-Vs"},
        ),
        migrations.AlterModelOptions(
            name="delivery",
            options={"verbose_name": "delivery", "verbose_name_plural": "deliveries"},
        ),
        migrations.AlterField(
            model_name="backfill",
            name="cancelled_at",
            field=models.DateTimeField(blank=True, null=True, verbose_name="taken back"),
        ),
        migrations.AlterField(
            model_name="backfill",
            name="done",
            field=models.IntegerField(
                default=0, help_text="Followers whose inbox has been filled.", verbose_name="filled"
            ),
        ),
        migrations.AlterField(
            model_name="backfill",
            name="finished_at",
            field=models.DateTimeField(blank=True, null=True, verbose_name="finished"),
        ),
        migrations.AlterField(
            model_name="backfill",
            name="followers",
            field=models.IntegerField(help_text="Followers when it began.", verbose_name="followers"),
        ),
        migrations.AlterField(
            model_name="backfill",
            name="last_error",
            field=models.TextField(blank=True, verbose_name="last error"),
        ),
        migrations.AlterField(
            model_name="backfill",
            name="sender",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
                verbose_name="sender",
            ),
        ),
        migrations.AlterField(
            model_name="backfill",
            name="started_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="started"),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="attempts",
            field=models.IntegerField(
                default=0,
                help_text="Fan-outs begun; counted before the work, so that a kill counts.",
                verbose_name="attempts",
            ),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="created_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="since"),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="item",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                primary_key=True,
                related_name="delivery",
                serialize=False,
                to="items.item",
                verbose_name="item",
            ),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="last_error",
            field=models.TextField(blank=True, verbose_name="last error"),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="parked_at",
            field=models.DateTimeField(blank=True, null=True, verbose_name="given up"),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="sender",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
                verbose_name="sender",
            ),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="sweep_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(),
                db_index=True,
                help_text="When the sweeper enqueues it again.",
                verbose_name="tried again",
            ),
        ),
    ]
