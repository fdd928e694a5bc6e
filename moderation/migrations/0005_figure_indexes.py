from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("moderation", "0004_figures"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="appeal",
            index=models.Index(fields=["created_at"], name="appeal_at"),
        ),
        AddIndexConcurrently(
            model_name="decision",
            index=models.Index(
                condition=models.Q(("is_told", True), ("verb", "grant"), _connector="OR"),
                fields=["at"],
                name="decision_counted",
            ),
        ),
        AddIndexConcurrently(
            model_name="report",
            index=models.Index(fields=["created_at"], name="report_at"),
        ),
    ]
