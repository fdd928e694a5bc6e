from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="MergeRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("node", models.PositiveSmallIntegerField(verbose_name="node")),
                ("task_shard", models.PositiveSmallIntegerField(verbose_name="task shard")),
                ("started_at", models.DateTimeField(verbose_name="started at")),
                ("seconds", models.FloatField(verbose_name="seconds")),
                ("users", models.IntegerField(default=0, verbose_name="users")),
                ("plays", models.IntegerField(default=0, verbose_name="plays")),
                ("error", models.CharField(blank=True, max_length=200, verbose_name="error")),
            ],
            options={
                "verbose_name": "merge",
                "verbose_name_plural": "merges of plays",
                "permissions": [("act_for_others", "Can report and ask what other users have seen")],
                "indexes": [models.Index(fields=["-started_at"], name="merge_run_latest")],
            },
        ),
        migrations.CreateModel(
            name="PlayedHistory",
            fields=[],
            options={
                "verbose_name": "played history",
                "verbose_name_plural": "played history",
                "proxy": True,
                "default_permissions": ("view",),
                "indexes": [],
                "constraints": [],
            },
            bases=("seen.mergerun",),
        ),
    ]
