from typing import Any

import django.contrib.postgres.indexes
from django.db import migrations, models

import accounts.names
from storage.indexes import AddIndexConcurrently

BATCH = 1000
# If a name changed meanwhile, its process writes the column.
FOLD = """
    UPDATE accounts_user u SET folded_name = f.name
    FROM unnest(%s::bigint[], %s::text[], %s::text[]) AS f (id, shown, name)
    WHERE u.id = f.id AND u.display_name = f.shown
"""


def fold(apps: Any, schema_editor: Any) -> None:
    """Fill the column, batch by batch."""
    users = apps.get_model("accounts", "User").objects.using(schema_editor.connection.alias)
    rest = users.filter(folded_name=None).exclude(display_name="").order_by("pk")
    last = 0
    while batch := list(rest.filter(pk__gt=last).values_list("pk", "username", "display_name")[:BATCH]):
        last = batch[-1][0]
        names = [(pk, shown, accounts.names.folded_name(username, shown)) for pk, username, shown in batch]
        if changed := [row for row in names if row[2] is not None]:
            with schema_editor.connection.cursor() as cursor:
                cursor.execute(FOLD, [list(column) for column in zip(*changed, strict=True)])


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("accounts", "0002_tables")]

    operations = [
        migrations.AddField("User", "folded_name", accounts.names.FoldedName()),
        migrations.RunPython(fold, migrations.RunPython.noop),
        AddIndexConcurrently(
            model_name="user",
            index=django.contrib.postgres.indexes.GinIndex(
                models.Func("folded_name", function="feedsite_grams"),
                condition=models.Q(("folded_name__isnull", False)),
                name="user_folded_names",
            ),
        ),
    ]
