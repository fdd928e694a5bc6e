"""The facts of their media in the rows of items. The default is a constant, so that no row is rewritten, and versions
that do not know the column insert it.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("items", "0008_versions"),
    ]

    operations = [
        migrations.AddField(
            model_name="item",
            name="media",
            field=models.JSONField(
                blank=True,
                db_default=[],
                default=list,
                editable=False,
                help_text="The facts of its media (media.objects).",
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
                    ("article", "article"),
                    ("repost", "repost"),
                ],
                default="text",
                max_length=16,
                verbose_name="type",
            ),
        ),
    ]
