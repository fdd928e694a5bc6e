"""Words of the admin; the database is left as it is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("moderation", "0008_blocked_pictures"),
    ]

    operations = [
        migrations.AlterField(
            model_name="picturerule",
            name="sha256",
            field=models.CharField(editable=False, max_length=64, unique=True, verbose_name="SHA-256"),
        ),
    ]
