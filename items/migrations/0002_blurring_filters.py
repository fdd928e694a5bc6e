from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("items", "0001_squashed"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="filter",
            name="filter_action",
        ),
        AddConstraintNotValid(
            model_name="filter",
            constraint=models.CheckConstraint(
                condition=models.Q(("action__in", ["warn", "blur", "hide"])), name="filter_action"
            ),
        ),
        ValidateConstraint(model_name="filter", name="filter_action"),
    ]
