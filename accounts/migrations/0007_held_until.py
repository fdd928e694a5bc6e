"""Drop the time until which a deleted account's name was held. Since 0.2.0 names are held for ever."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("accounts", "0006_preferences")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE accounts_heldname DROP COLUMN IF EXISTS until",
            "ALTER TABLE accounts_heldname ADD COLUMN until timestamptz NULL",
        ),
    ]
