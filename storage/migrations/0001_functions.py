from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.RunSQL((SQL / "ids.sql").read_text()),
        migrations.RunSQL((SQL / "draws.sql").read_text()),
        migrations.RunSQL((SQL / "written.sql").read_text()),
    ]
