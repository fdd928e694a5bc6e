from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("notifications", "0002_bells"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="notification",
            index=models.Index(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "like",
                            "repost",
                            "quote",
                            "follow",
                            "follow_request",
                            "follow_accepted",
                            "post",
                            "live",
                            "poll",
                        ],
                    )
                ),
                fields=["recipient", "kind", "-position"],
                name="notification_of_kind",
            ),
        ),
        # Devices that were added before there were bells. Apps ask for the kind themselves.
        migrations.RunSQL(
            """
            UPDATE notifications_pushsubscription SET kinds = kinds || 'post'::varchar
            WHERE session_key IS NOT NULL AND NOT 'post' = ANY(kinds)
            """,
            migrations.RunSQL.noop,
        ),
    ]
