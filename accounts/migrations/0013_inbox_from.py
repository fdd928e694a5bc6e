from typing import Any

from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.db import migrations, models

import accounts.models
from accounts.levels import policy
from storage.draws import Draw


def seed(apps: Any, schema_editor: Any) -> None:
    """Seed the policy from the environment, which counts at the first start only."""
    row = apps.get_model("accounts", "Policy").objects
    row.update(drawn_on=models.F("timeline"))
    if inbox_from := policy.configured().inbox_from:
        row.update(inbox_from=inbox_from, generation=Draw(), timeline=None)


def unseed(apps: Any, schema_editor: Any) -> None:
    """The version before gives every active reader an inbox, and goes by `timeline` alone."""
    row = apps.get_model("accounts", "Policy").objects
    row.filter(inbox_from__gt=0).update(inbox_from=0, generation=Draw(), timeline=models.F("drawn_on"))


class Migration(migrations.Migration):
    dependencies = [("accounts", "0012_promotion")]

    operations = [
        migrations.AddField(
            model_name="policy",
            name="inbox_from",
            field=models.IntegerField(
                db_default=0,
                default=0,
                help_text="Readers with fewer followees have no inbox; 0: every active reader has one.",
            ),
        ),
        migrations.AddField(
            model_name="policy", name="drawn_on", field=models.BigIntegerField(editable=False, null=True)
        ),
        migrations.AlterField(
            model_name="policy",
            name="drawn_on",
            field=models.BigIntegerField(db_default=accounts.models.Timeline(), editable=False, null=True),
        ),
        migrations.AlterField(
            model_name="policy",
            name="timeline",
            field=models.BigIntegerField(db_default=accounts.models.Timeline(), editable=False, null=True),
        ),
        AddConstraintNotValid(
            model_name="policy",
            constraint=models.CheckConstraint(
                condition=models.Q(("inbox_from__range", (0, 100_000))), name="policy_inbox_from"
            ),
        ),
        AddConstraintNotValid(
            model_name="policy",
            constraint=models.CheckConstraint(
                condition=models.Q(("inbox_from", 0)) | models.Q(("timeline", None)), name="policy_for_older_versions"
            ),
        ),
        migrations.RunPython(seed, unseed),
        ValidateConstraint(model_name="policy", name="policy_inbox_from"),
        ValidateConstraint(model_name="policy", name="policy_for_older_versions"),
    ]
