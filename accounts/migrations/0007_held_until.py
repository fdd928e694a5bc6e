"""Drop the column of names that were held for a time. They are held for ever since 0.2.0."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("accounts", "0006_preferences")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE accounts_heldname DROP COLUMN IF EXISTS until",
            "ALTER TABLE accounts_heldname ADD COLUMN until timestamptz NULL",
        ),
    ]
