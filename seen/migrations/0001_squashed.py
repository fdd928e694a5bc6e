from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("seen", "0001_tables"), ("seen", "0002_no_played_history")]

    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="MergeRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("node", models.PositiveSmallIntegerField()),
                ("task_shard", models.PositiveSmallIntegerField()),
                ("started_at", models.DateTimeField()),
                ("seconds", models.FloatField()),
                ("users", models.IntegerField(default=0)),
                ("plays", models.IntegerField(default=0)),
                ("error", models.CharField(max_length=200)),
            ],
            options={
                "verbose_name": "merge",
                "verbose_name_plural": "merges of plays",
                "permissions": [("act_for_others", "Can report and ask what other users have seen")],
                "indexes": [models.Index(fields=["-started_at"], name="merge_run_latest")],
            },
        ),
    ]
