"""Names of models and fields for people; nothing in the database changes."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("items", "0006_visibility"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
    ]
