import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("items", "0003_uncounted"),
        ("notifications", "0001_squashed"),
    ]

    operations = [
        migrations.CreateModel(
            name="Ringing",
            fields=[
                ("attempts", models.SmallIntegerField(default=0)),
                ("tried_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "item",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        serialize=False,
                        to="items.item",
                    ),
                ),
                ("up_to", models.BigIntegerField(default=0)),
            ],
            options={
                "abstract": False,
            },
        ),
    ]
