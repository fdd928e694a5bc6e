from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("items", "0003_uncounted"),
        ("notifications", "0003_kinds"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="notification",
            name="notification_of_one",
        ),
        migrations.AddField(
            model_name="notification",
            name="detail",
            field=models.CharField(db_default="", default="", max_length=16),
        ),
        migrations.AddField(
            model_name="notification",
            name="subject_id",
            field=models.BigIntegerField(null=True),
        ),
        AddConstraintNotValid(
            model_name="notification",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("day__isnull", False),
                        ("item", None),
                        ("kind__in", ["follow", "follow_request", "follow_accepted"]),
                        ("session_id", None),
                    ),
                    models.Q(("day", None), ("item", None), ("kind", "live"), ("session_id__isnull", False)),
                    models.Q(
                        ("day", None), ("item", None), ("kind__in", ["warning", "report", "case"]), ("session_id", None)
                    ),
                    models.Q(("day", None), ("kind", "scheduled"), ("session_id", None)),
                    models.Q(
                        models.Q(
                            (
                                "kind__in",
                                [
                                    "follow",
                                    "follow_request",
                                    "follow_accepted",
                                    "live",
                                    "warning",
                                    "scheduled",
                                    "report",
                                    "case",
                                ],
                            ),
                            _negated=True,
                        ),
                        ("day", None),
                        ("item__isnull", False),
                        ("session_id", None),
                    ),
                    _connector="OR",
                ),
                name="notification_of_one",
            ),
        ),
        ValidateConstraint(model_name="notification", name="notification_of_one"),
    ]
