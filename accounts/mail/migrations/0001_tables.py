import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Letter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=40)),
                ("address", models.CharField(max_length=254)),
                ("user_id", models.BigIntegerField(null=True)),
                ("language", models.CharField(max_length=10)),
                ("context", models.JSONField(default=dict)),
                ("state", models.CharField(db_default="waiting", default="waiting", max_length=8)),
                ("attempts", models.IntegerField(db_default=0, default=0)),
                ("error", models.CharField(db_default="", default="", max_length=300)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("next_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField()),
                ("sent_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("state", "waiting")), fields=["next_at"], name="mail_waiting"),
                    models.Index(
                        condition=models.Q(("state__in", ["waiting", "failed"])),
                        fields=["expires_at"],
                        name="mail_expiring",
                    ),
                    models.Index(condition=models.Q(("state", "failed")), fields=["-id"], name="mail_failed"),
                    models.Index(fields=["created_at"], name="mail_written"),
                    models.Index(condition=models.Q(("user_id__isnull", False)), fields=["user_id"], name="mail_user"),
                ],
            },
        ),
    ]
