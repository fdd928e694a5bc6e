"""Warnings by moderators."""

from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("items", "0007_labels"),
        ("notifications", "0002_sessions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="notification",
            name="notification_item_or_day",
        ),
        migrations.AddField(
            model_name="notification",
            name="text",
            field=models.CharField(db_default="", default="", help_text="Of moderators.", max_length=1000),
        ),
        migrations.AlterField(
            model_name="notification",
            name="kind",
            field=models.CharField(
                choices=[
                    ("like", "Like"),
                    ("reply", "Reply"),
                    ("repost", "Repost"),
                    ("follow", "Follow"),
                    ("mention", "Mention"),
                    ("live", "Live"),
                    ("warning", "Warning"),
                ],
                max_length=16,
            ),
        ),
        AddConstraintNotValid(
            model_name="notification",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("day__isnull", False), ("item", None), ("kind", "follow"), ("session_id", None)),
                    models.Q(("day", None), ("item", None), ("kind", "live"), ("session_id__isnull", False)),
                    models.Q(("day", None), ("item", None), ("kind", "warning"), ("session_id", None)),
                    models.Q(
                        models.Q(("kind__in", ["follow", "live", "warning"]), _negated=True),
                        ("day", None),
                        ("item__isnull", False),
                        ("session_id", None),
                    ),
                    _connector="OR",
                ),
                name="notification_of_one",
            ),
        ),
    ]
