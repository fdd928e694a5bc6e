"""Names of models and fields for people; nothing in the database changes."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import items.models


class Migration(migrations.Migration):
    dependencies = [
        ("items", "0006_visibility"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="item",
            options={"verbose_name": "item", "verbose_name_plural": "items"},
        ),
        migrations.AlterField(
            model_name="item",
            name="created_at",
            field=models.GeneratedField(
                db_persist=True,
                expression=models.Func("id", function="feedsite_id_time"),
                output_field=models.DateTimeField(),
                verbose_name="written",
            ),
        ),
        migrations.AlterField(
            model_name="item",
            name="modified_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(), verbose_name="last written"
            ),
        ),
        migrations.AlterField(
            model_name="item",
            name="published_at",
            field=models.DateTimeField(
                blank=True, help_text="Where that is later than it was written.", null=True, verbose_name="seen since"
            ),
        ),
        migrations.AlterField(
            model_name="item",
            name="sender",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="items",
                to=settings.AUTH_USER_MODEL,
                verbose_name="sender",
            ),
        ),
        migrations.AlterField(
            model_name="item",
            name="status",
            field=models.CharField(
                choices=[
                    ("published", "published"),
                    ("in_review", "in review"),
                    ("rejected", "rejected"),
                    ("deleted", "deleted"),
                ],
                default="published",
                max_length=16,
                verbose_name="status",
            ),
        ),
        migrations.AlterField(
            model_name="item",
            name="title",
            field=models.CharField(blank=True, max_length=200, verbose_name="title"),
        ),
        migrations.AlterField(
            model_name="item",
            name="type",
            field=models.CharField(
                choices=[
                    ("text", "text"),
                    ("image", "image"),
                    ("video", "video"),
                    ("link", "link"),
                    ("repost", "repost"),
                ],
                default="text",
                max_length=16,
                verbose_name="type",
            ),
        ),
        migrations.AlterField(
            model_name="item",
            name="visibility",
            field=models.CharField(
                choices=[
                    ("public", "public"),
                    ("followers", "followers"),
                    ("mutuals", "mutuals"),
                    ("self", "only the author"),
                ],
                default="public",
                max_length=16,
                verbose_name="visible to",
            ),
        ),
        migrations.AlterField(
            model_name="item",
            name="id",
            field=models.BigIntegerField(
                db_default=items.models.ItemId(), editable=False, primary_key=True, serialize=False, verbose_name="ID"
            ),
        ),
    ]
