from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


def unique(model, name, columns, fields, condition, where):
    """A unique index that is built beside those who write; begun anew, it is built anew."""
    table = f"moderation_{model}"
    drop = f"DROP INDEX CONCURRENTLY IF EXISTS {name}"
    build = f"CREATE UNIQUE INDEX CONCURRENTLY {name} ON {table} ({columns}) WHERE {where}"
    constraint = models.UniqueConstraint(condition=condition, fields=fields, name=name)
    return migrations.SeparateDatabaseAndState(
        database_operations=[migrations.RunSQL([drop, build], [drop])],
        state_operations=[migrations.AddConstraint(model_name=model, constraint=constraint)],
    )


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("moderation", "0002_review")]

    operations = [
        AddIndexConcurrently(
            model_name="case",
            index=models.Index(
                condition=models.Q(("session_id__isnull", False)), fields=["session_id", "-id"], name="case_session"
            ),
        ),
        unique(
            "case",
            "case_session_open_once",
            "session_id",
            ("session_id",),
            models.Q(("state", "open")),
            "state = 'open'",
        ),
        unique(
            "report",
            "report_session_once",
            "session_id, reporter_id",
            ("session_id", "reporter"),
            models.Q(("session_id__isnull", False)),
            "session_id IS NOT NULL",
        ),
        ValidateConstraint(model_name="case", name="case_of_one"),
        ValidateConstraint(model_name="report", name="report_of_one"),
        migrations.RunSQL(
            "ALTER TABLE moderation_case VALIDATE CONSTRAINT moderation_case_host", migrations.RunSQL.noop
        ),
    ]
