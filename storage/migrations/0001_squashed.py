from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):
    replaces = [
        ("feedsite", "0001_functions"),
        ("feedsite", "0002_site_key"),
        ("feedsite", "0003_times_of_writes"),
        ("feedsite", "0004_later_ids"),
    ]

    initial = True

    dependencies = []

    operations = [
        migrations.RunSQL((SQL / "ids.sql").read_text()),
        migrations.RunSQL((SQL / "draws.sql").read_text()),
        migrations.RunSQL((SQL / "written.sql").read_text()),
        migrations.CreateModel(
            name="SiteKey",
            fields=[
                ("id", models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("fingerprint", models.CharField(max_length=64)),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(("id", 1)), name="site_key_one_row")],
            },
        ),
    ]
