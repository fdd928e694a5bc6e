from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("feedsite", "0001_functions"),
    ]

    operations = [
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
