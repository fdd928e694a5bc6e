"""Requests to follow, and those that were accepted."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

DAYS = ["follow", "follow_request", "follow_accepted"]


class Migration(migrations.Migration):
    dependencies = [("notifications", "0006_pictures"), ("relations", "0006_requests")]

    operations = [
        migrations.RemoveConstraint(model_name="notification", name="notification_of_one"),
        migrations.AlterField(
            model_name="notification",
            name="kind",
            field=models.CharField(
                choices=[
                    ("like", "Like"),
                    ("reply", "Reply"),
                    ("repost", "Repost"),
                    ("follow", "Follow"),
                    ("follow_request", "Follow Request"),
                    ("follow_accepted", "Follow Accepted"),
                    ("mention", "Mention"),
                    ("live", "Live"),
                    ("warning", "Warning"),
                    ("picture", "Picture"),
                ],
                max_length=16,
            ),
        ),
        AddConstraintNotValid(
            model_name="notification",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("day__isnull", False), ("item", None), ("kind__in", DAYS), ("session_id", None)),
                    models.Q(("day", None), ("item", None), ("kind", "live"), ("session_id__isnull", False)),
                    models.Q(("day", None), ("item", None), ("kind", "warning"), ("session_id", None)),
                    models.Q(
                        models.Q(("kind__in", [*DAYS, "live", "warning"]), _negated=True),
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
