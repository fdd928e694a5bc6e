import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Letter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        help_text="The name of its text, templates/mail/<kind>.txt.", max_length=40, verbose_name="kind"
                    ),
                ),
                ("address", models.CharField(max_length=254, verbose_name="address")),
                ("user_id", models.BigIntegerField(blank=True, null=True, verbose_name="user")),
                ("language", models.CharField(blank=True, max_length=10, verbose_name="language")),
                ("context", models.JSONField(default=dict)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("sent", "sent"),
                            ("failed", "given up"),
                            ("expired", "expired"),
                        ],
                        db_default="waiting",
                        default="waiting",
                        max_length=8,
                        verbose_name="state",
                    ),
                ),
                ("attempts", models.IntegerField(db_default=0, default=0, verbose_name="attempts")),
                (
                    "error",
                    models.CharField(blank=True, db_default="", default="", max_length=300, verbose_name="last error"),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="written"),
                ),
                (
                    "next_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="next try"),
                ),
                ("expires_at", models.DateTimeField(verbose_name="expires")),
                ("sent_at", models.DateTimeField(blank=True, null=True, verbose_name="sent")),
            ],
            options={
                "verbose_name": "outgoing email",
                "verbose_name_plural": "outgoing emails",
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
