"""Requests to follow locked accounts."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("relations", "0005_without_reposts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="FollowRequest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("reposts", models.BooleanField(default=True, help_text="As of the follow that it becomes.")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="since"),
                ),
                (
                    "followee",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="asked_by",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="asks to follow",
                    ),
                ),
                (
                    "follower",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="asks",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="follower",
                    ),
                ),
            ],
            options={
                "verbose_name": "follow request",
                "verbose_name_plural": "follow requests",
                "indexes": [models.Index(fields=["followee", "-id"], name="follow_request_page")],
                "constraints": [
                    models.UniqueConstraint(fields=("follower", "followee"), name="follow_request_pair"),
                    models.CheckConstraint(
                        condition=models.Q(("follower", models.F("followee")), _negated=True),
                        name="follow_request_not_self",
                    ),
                ],
            },
        ),
    ]
