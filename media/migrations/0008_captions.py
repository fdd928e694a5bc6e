"""Captions of videos."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("media", "0007_colour"),
    ]

    operations = [
        migrations.AddField(
            model_name="mediafile",
            name="captions",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The end of the name of a video's captions.",
                max_length=8,
            ),
        ),
    ]
