import django.db.models.deletion
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

HOST = """
ALTER TABLE moderation_case ADD COLUMN host_id bigint;
ALTER TABLE moderation_case ADD CONSTRAINT moderation_case_host FOREIGN KEY (host_id) REFERENCES accounts_user (id)
    DEFERRABLE INITIALLY DEFERRED NOT VALID
"""


class Migration(migrations.Migration):
    dependencies = [
        ("items", "0005_discoverable"),
        ("moderation", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(HOST, "ALTER TABLE moderation_case DROP COLUMN host_id")],
            state_operations=[
                migrations.AddField(
                    model_name="case",
                    name="host",
                    field=models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="case",
            name="session_id",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="decision",
            name="session_id",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="report",
            name="session_id",
            field=models.BigIntegerField(null=True, verbose_name="live session"),
        ),
        migrations.AlterField(
            model_name="case",
            name="item",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="items.item",
            ),
        ),
        migrations.AlterField(
            model_name="report",
            name="item",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="items.item",
                verbose_name="item",
            ),
        ),
        AddConstraintNotValid(
            model_name="case",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("item__isnull", False), ("session_id", None)),
                    models.Q(("item", None), ("session_id__isnull", False)),
                    _connector="OR",
                ),
                name="case_of_one",
            ),
        ),
        AddConstraintNotValid(
            model_name="report",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("item__isnull", False), ("session_id", None)),
                    models.Q(("item", None), ("session_id__isnull", False)),
                    _connector="OR",
                ),
                name="report_of_one",
            ),
        ),
    ]
