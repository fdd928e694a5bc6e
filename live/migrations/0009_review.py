import django.db.models.functions.datetime
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("live", "0008_shown_replays"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="livesession",
            name="review",
            field=models.CharField(
                blank=True,
                choices=[("in_review", "In review"), ("rejected", "Rejected")],
                db_default="",
                default="",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="livesession",
            name="worded_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(), editable=False, verbose_name="words of"
            ),
        ),
        AddConstraintNotValid(
            model_name="livesession",
            constraint=models.CheckConstraint(
                condition=models.Q(("review", ""), ("hidden_at__isnull", False), _connector="OR"),
                name="live_reviewed_hidden",
            ),
        ),
    ]
