"""Mutes that end by themselves, and mutes without notifications."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("relations", "0006_requests")]

    operations = [
        migrations.AddField(
            model_name="mute",
            name="notifications",
            field=models.BooleanField(
                db_default=True,
                default=True,
                help_text="Whether notifications of what the muted user does are left out too.",
            ),
        ),
        migrations.AddField(
            model_name="mute",
            name="expires_at",
            field=models.DateTimeField(null=True, verbose_name="until"),
        ),
    ]
