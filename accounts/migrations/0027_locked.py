"""Accounts whose users decide on each follower."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0026_filters_version")]

    operations = [
        migrations.AddField(
            model_name="user",
            name="is_locked",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Whether the user decides on each follower.",
                verbose_name="locked",
            ),
        ),
    ]
