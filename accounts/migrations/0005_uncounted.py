import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_post_defaults"),
    ]

    operations = [
        migrations.CreateModel(
            name="Recount",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("attempts", models.SmallIntegerField(default=0)),
                ("tried_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("finished_at", models.DateTimeField(null=True)),
                ("user_id", models.BigIntegerField(db_index=True)),
                ("places", models.JSONField(default=dict)),
                ("is_second", models.BooleanField(default=False)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.AddField(
            model_name="user",
            name="uncounted_followees",
            field=models.SmallIntegerField(db_default=0, default=0),
        ),
        # Who is hidden already counts until now.
        migrations.RunSQL(
            """
            INSERT INTO accounts_recount (user_id, attempts, places, is_second)
            SELECT id, 0, '{}', false FROM accounts_user WHERE NOT is_active AND deleted_at IS NULL
            """,
            migrations.RunSQL.noop,
        ),
    ]
