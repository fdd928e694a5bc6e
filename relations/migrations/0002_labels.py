"""Names of models and fields for people; nothing in the database changes."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("relations", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="block",
            options={"verbose_name": "block", "verbose_name_plural": "blocks"},
        ),
        migrations.AlterModelOptions(
            name="follow",
            options={"verbose_name": "follow", "verbose_name_plural": "follows"},
        ),
        migrations.AlterModelOptions(
            name="mute",
            options={"verbose_name": "mute", "verbose_name_plural": "mutes"},
        ),
        migrations.AlterField(
            model_name="block",
            name="blocked",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="blocked_by",
                to=settings.AUTH_USER_MODEL,
                verbose_name="blocked user",
            ),
        ),
        migrations.AlterField(
            model_name="block",
            name="blocker",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="blocks",
                to=settings.AUTH_USER_MODEL,
                verbose_name="blocker",
            ),
        ),
        migrations.AlterField(
            model_name="block",
            name="created_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="since"),
        ),
        migrations.AlterField(
            model_name="follow",
            name="created_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="since"),
        ),
        migrations.AlterField(
            model_name="follow",
            name="followee",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="followed_by",
                to=settings.AUTH_USER_MODEL,
                verbose_name="follows",
            ),
        ),
        migrations.AlterField(
            model_name="follow",
            name="follower",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="follows",
                to=settings.AUTH_USER_MODEL,
                verbose_name="follower",
            ),
        ),
        migrations.AlterField(
            model_name="mute",
            name="created_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="since"),
        ),
        migrations.AlterField(
            model_name="mute",
            name="muted",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="muted_by",
                to=settings.AUTH_USER_MODEL,
                verbose_name="muted user",
            ),
        ),
        migrations.AlterField(
            model_name="mute",
            name="muter",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="mutes",
                to=settings.AUTH_USER_MODEL,
                verbose_name="muter",
            ),
        ),
    ]
