from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("moderation", "0003_decision_indexes"),
    ]

    operations = [
        migrations.CreateModel(
            name="DailyFigures",
            fields=[
                ("day", models.DateField(primary_key=True, serialize=False)),
                ("reports", models.IntegerField(db_default=0, default=0)),
                ("removals", models.IntegerField(db_default=0, default=0)),
                ("warnings", models.IntegerField(db_default=0, default=0)),
                ("limits", models.IntegerField(db_default=0, default=0)),
                ("suspensions", models.IntegerField(db_default=0, default=0)),
                ("appeals", models.IntegerField(db_default=0, default=0)),
                ("reversals", models.IntegerField(db_default=0, default=0)),
            ],
            options={
                "default_permissions": (),
            },
        ),
    ]
