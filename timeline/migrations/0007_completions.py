"""The sequence that tells pages whether a delivery was completed since they read their windows."""

from django.db import migrations

from timeline import completions


class Migration(migrations.Migration):
    dependencies = [("accounts", "0012_promotion"), ("timeline", "0006_demoted_by_hand")]

    operations = [migrations.RunSQL(completions.SQL, completions.DROP_SQL)]
