"""Words of the admin; the database is left as it is."""

from django.db import migrations, models

import media.models


class Migration(migrations.Migration):
    dependencies = [
        ("media", "0003_digest"),
    ]

    operations = [
        migrations.AlterField(
            model_name="mediafile",
            name="hidden_at",
            field=models.DateTimeField(
                blank=True, help_text="By moderators; its files are withdrawn.", null=True, verbose_name="hidden"
            ),
        ),
        migrations.AlterField(
            model_name="mediafile",
            name="id",
            field=models.BigIntegerField(
                db_default=media.models.MediaId(), editable=False, primary_key=True, serialize=False, verbose_name="ID"
            ),
        ),
        migrations.AlterField(
            model_name="mediafile",
            name="sha256",
            field=models.CharField(help_text="Of the file that was sent.", max_length=64, verbose_name="SHA-256"),
        ),
    ]
