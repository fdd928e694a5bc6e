from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="FollowerCountChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("change", models.SmallIntegerField()),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="List",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("title", models.CharField(max_length=100, verbose_name="title")),
                ("is_exclusive", models.BooleanField(db_default=False, default=False, verbose_name="hidden from home")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="since"),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lists",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "list",
                "verbose_name_plural": "lists",
                "indexes": [models.Index(fields=["owner", "-id"], name="list_page")],
            },
        ),
        migrations.CreateModel(
            name="ListMember",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "list",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="members",
                        to="relations.list",
                    ),
                ),
                (
                    "member",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["owner", "member"], name="list_member_of_follow"),
                    models.Index(fields=["list", "-id"], name="list_member_page"),
                ],
                "constraints": [models.UniqueConstraint(fields=("list", "member"), name="list_member_pair")],
            },
        ),
        migrations.CreateModel(
            name="Mute",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "notifications",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="Whether notifications of what the muted user does are left out too.",
                    ),
                ),
                ("expires_at", models.DateTimeField(null=True, verbose_name="until")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="since"),
                ),
                (
                    "muted",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="muted_by",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="muted user",
                    ),
                ),
                (
                    "muter",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="mutes",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="muter",
                    ),
                ),
            ],
            options={
                "verbose_name": "mute",
                "verbose_name_plural": "mutes",
                "indexes": [
                    models.Index(fields=["muted", "muter"], name="mute_reverse"),
                    models.Index(fields=["muter", "-id"], name="mute_page"),
                    models.Index(
                        condition=models.Q(("expires_at__isnull", False)), fields=["expires_at"], name="mute_end"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("muter", "muted"), name="mute_pair"),
                    models.CheckConstraint(
                        condition=models.Q(("muter", models.F("muted")), _negated=True), name="mute_not_self"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Block",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="since"),
                ),
                (
                    "blocked",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="blocked_by",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="blocked user",
                    ),
                ),
                (
                    "blocker",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="blocks",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="blocker",
                    ),
                ),
            ],
            options={
                "verbose_name": "block",
                "verbose_name_plural": "blocks",
                "indexes": [
                    models.Index(fields=["blocked", "blocker"], name="block_reverse"),
                    models.Index(fields=["blocker", "-id"], name="block_page"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("blocker", "blocked"), name="block_pair"),
                    models.CheckConstraint(
                        condition=models.Q(("blocker", models.F("blocked")), _negated=True), name="block_not_self"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CsvImport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attempts", models.SmallIntegerField(default=0, help_text="Since a worker last came further.")),
                ("tried_at", models.DateTimeField(help_text="When a worker last took it, or came further.", null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("finished_at", models.DateTimeField(null=True)),
                ("kind", models.CharField(max_length=16)),
                ("lines", models.JSONField(default=list)),
                ("total", models.IntegerField()),
                ("done", models.IntegerField(default=0)),
                ("changed", models.IntegerField(default=0)),
                ("requested", models.IntegerField(default=0)),
                ("refused", models.JSONField(default=list)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["user", "-id"], name="csv_import_page"),
                    models.Index(condition=models.Q(("finished_at", None)), fields=["id"], name="csv_import_waiting"),
                    models.Index(
                        condition=models.Q(("finished_at__isnull", False)),
                        fields=["finished_at"],
                        name="csv_import_finished",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("finished_at", None)), fields=("user",), name="csv_import_at_a_time"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Follow",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "reposts",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="Whether the follower's home shows what the followee reposts.",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="since"),
                ),
                (
                    "followee",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="followed_by",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="follows",
                    ),
                ),
                (
                    "follower",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="follows",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="follower",
                    ),
                ),
            ],
            options={
                "verbose_name": "follow",
                "verbose_name_plural": "follows",
                "indexes": [
                    models.Index(fields=["followee", "follower"], name="follow_reverse"),
                    models.Index(fields=["follower", "-id"], name="follow_following_page"),
                    models.Index(fields=["followee", "-id"], name="follow_followers_page"),
                    models.Index(
                        condition=models.Q(("reposts", False)),
                        fields=["follower", "followee"],
                        name="follow_without_reposts",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("follower", models.F("followee")), _negated=True), name="follow_not_self"
                    ),
                ],
            },
        ),
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
        # CreateModel adds constraints at the end of the migration, but the foreign key below needs this one.
        migrations.AddConstraint(
            "follow", models.UniqueConstraint(fields=["follower", "followee"], name="follow_pair")
        ),
        migrations.RunSQL((SQL / "list_members.sql").read_text()),
    ]
