"""Whether what a user opens is remembered (discover.recent): a setting that outlives any loss of Redis."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_deletion"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="keeps_history",
            field=models.BooleanField(
                db_default=True, default=True, help_text="Whether what the user opens is remembered for a while."
            ),
        ),
    ]
