import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import items.models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_users"),
        ("items", "0001_tables"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ReadMark",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="notifications_read",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("up_to", models.BigIntegerField()),
                ("put_away", models.BigIntegerField(db_default=0, default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Silenced",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "kinds",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=16), size=None),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Notification",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("like", "Like"),
                            ("reply", "Reply"),
                            ("repost", "Repost"),
                            ("follow", "Follow"),
                            ("follow_request", "Follow Request"),
                            ("follow_accepted", "Follow Accepted"),
                            ("mention", "Mention"),
                            ("live", "Live"),
                            ("warning", "Warning"),
                            ("picture", "Picture"),
                        ],
                        max_length=16,
                    ),
                ),
                ("day", models.DateField(null=True)),
                ("session_id", models.BigIntegerField(null=True)),
                ("text", models.CharField(db_default="", default="", help_text="Of moderators.", max_length=1000)),
                ("position", models.BigIntegerField(db_default=items.models.ItemId())),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="items.item",
                    ),
                ),
                (
                    "recipient",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notifications",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["recipient", "-position"], name="notification_list"),
                    models.Index(
                        condition=models.Q(("kind__in", ["mention", "reply"])),
                        fields=["recipient", "-position"],
                        name="notification_conversation",
                    ),
                    models.Index(fields=["position"], name="notification_age"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("day", None)),
                        fields=("recipient", "item", "kind"),
                        name="notification_of_item",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "follow")),
                        fields=("recipient", "day"),
                        name="notification_of_followers",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind__in", ["follow_request", "follow_accepted"])),
                        fields=("recipient", "kind", "day"),
                        name="notification_of_requests",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "live")),
                        fields=("recipient", "session_id"),
                        name="notification_of_session",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("day__isnull", False),
                                ("item", None),
                                ("kind__in", ["follow", "follow_request", "follow_accepted"]),
                                ("session_id", None),
                            ),
                            models.Q(("day", None), ("item", None), ("kind", "live"), ("session_id__isnull", False)),
                            models.Q(("day", None), ("item", None), ("kind", "warning"), ("session_id", None)),
                            models.Q(
                                models.Q(
                                    ("kind__in", ["follow", "follow_request", "follow_accepted", "live", "warning"]),
                                    _negated=True,
                                ),
                                ("day", None),
                                ("item__isnull", False),
                                ("session_id", None),
                            ),
                            _connector="OR",
                        ),
                        name="notification_of_one",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Act",
            fields=[
                (
                    "id",
                    models.BigIntegerField(
                        db_default=items.models.ItemId(), editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "actor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "recipient",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "notification",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="acts",
                        to="notifications.notification",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["notification", "-id"], name="act_newest"),
                    models.Index(fields=["recipient", "-id"], name="act_list"),
                ],
                "constraints": [models.UniqueConstraint(fields=("notification", "actor"), name="act_once")],
            },
        ),
    ]
