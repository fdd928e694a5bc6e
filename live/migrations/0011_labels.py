"""Names of models and fields for people; nothing in the database changes."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("live", "0010_reviewed_hidden"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="replaydelivery",
            options={"verbose_name": "delivery of a replay", "verbose_name_plural": "deliveries of replays"},
        ),
        migrations.AlterField(
            model_name="livesession",
            name="review",
            field=models.CharField(
                blank=True,
                choices=[("in_review", "in review"), ("rejected", "rejected")],
                db_default="",
                default="",
                max_length=16,
                verbose_name="moderation",
            ),
        ),
        migrations.AlterField(
            model_name="livesession",
            name="state",
            field=models.CharField(
                choices=[
                    ("upcoming", "upcoming"),
                    ("live", "live"),
                    ("replay", "replay"),
                    ("cancelled", "cancelled"),
                    ("missed", "missed"),
                ],
                default="upcoming",
                max_length=16,
                verbose_name="state",
            ),
        ),
    ]
