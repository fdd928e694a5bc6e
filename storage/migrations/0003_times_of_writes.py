from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("feedsite", "0002_site_key"),
    ]

    # The version before then reads everything from the primary.
    operations = [
        migrations.RunSQL("DROP TABLE feedsite_written;" + (SQL / "written.sql").read_text()),
    ]
