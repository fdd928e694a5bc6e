from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):
    dependencies = [("feedsite", "0003_times_of_writes")]

    operations = [migrations.RunSQL((SQL / "later_ids.sql").read_text())]
