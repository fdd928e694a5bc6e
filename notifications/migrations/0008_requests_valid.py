"""The rows of before are looked at, and the index is built, beside writers."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("notifications", "0007_requests")]

    operations = [
        ValidateConstraint(model_name="notification", name="notification_of_one"),
        # Begun anew, it drops what an interrupted build has left.
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS notification_of_requests",
                    "DROP INDEX CONCURRENTLY IF EXISTS notification_of_requests",
                ),
                migrations.RunSQL(
                    "CREATE UNIQUE INDEX CONCURRENTLY notification_of_requests"
                    " ON notifications_notification (recipient_id, kind, day)"
                    " WHERE kind IN ('follow_request', 'follow_accepted')",
                    migrations.RunSQL.noop,
                ),
            ],
            state_operations=[
                migrations.AddConstraint(
                    model_name="notification",
                    constraint=models.UniqueConstraint(
                        condition=models.Q(("kind__in", ["follow_request", "follow_accepted"])),
                        fields=("recipient", "kind", "day"),
                        name="notification_of_requests",
                    ),
                )
            ],
        ),
    ]
