from typing import Any

from django.db import migrations, models

import accounts.models
import storage.draws
from accounts.levels import policy


def seed(apps: Any, schema_editor: Any) -> None:
    apps.get_model("accounts", "Policy").objects.create(push_level=policy.configured().push_level)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_keeps_history")]

    operations = [
        migrations.RunSQL(storage.draws.DRAW_SQL, storage.draws.DROP_DRAW_SQL),
        migrations.RunSQL(policy.TIMELINE_SQL, policy.DROP_TIMELINE_SQL),
        migrations.AlterField(
            model_name="user",
            name="window_epoch",
            field=models.BigIntegerField(db_default=storage.draws.Draw(), editable=False),
        ),
        migrations.CreateModel(
            name="Policy",
            fields=[
                ("id", models.SmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                (
                    "push_level",
                    models.SmallIntegerField(help_text="Followers of at least this level are pushed a big-V's items."),
                ),
                ("generation", models.BigIntegerField(db_default=storage.draws.Draw(), editable=False)),
                ("timeline", models.BigIntegerField(db_default=accounts.models.Timeline(), editable=False)),
            ],
            options={
                "verbose_name_plural": "policy",
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="policy_one_row"),
                    models.CheckConstraint(condition=models.Q(("push_level__range", (1, 4))), name="policy_push_level"),
                ],
            },
        ),
        migrations.RunPython(seed, migrations.RunPython.noop),
    ]
