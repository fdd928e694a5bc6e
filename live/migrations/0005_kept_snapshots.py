"""Kept snapshots are their readers': bounded for each, and shared by walks that begin in the same order.

They have a table of their own: processes of the version before go on with theirs until they are restarted. It is left
behind, for a later version to drop; its rows are walks of half an hour through which Redis did not answer.
"""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("live", "0004_deliveries"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel(name="KeptSnapshot")]),
        migrations.CreateModel(
            name="KeptSnapshot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(help_text="Of what was frozen.", max_length=24)),
                ("lives", models.IntegerField(help_text="How many of the entries were live; they come first.")),
                (
                    "entries",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        help_text="Ids in the frozen order; minus the id where upcoming.",
                        size=None,
                    ),
                ),
                ("expires_at", models.DateTimeField(db_index=True)),
                (
                    "reader",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "live_walksnapshot",
                "constraints": [models.UniqueConstraint(fields=("reader", "digest"), name="live_kept_once")],
            },
        ),
    ]
