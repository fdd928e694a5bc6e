from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import storage.draws

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):
    replaces = [("relations", "0001_tables"), ("relations", "0002_followed_tags")]

    initial = True

    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="FollowerCountChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("change", models.SmallIntegerField()),
                (
                    "user",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
                ),
            ],
        ),
        migrations.CreateModel(
            name="List",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("title", models.CharField(max_length=100)),
                ("is_exclusive", models.BooleanField(db_default=False, default=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "list",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="relations.list",
                    ),
                ),
                (
                    "member",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("notifications", models.BooleanField(db_default=True, default=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "muted",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "muter",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "blocked",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "blocker",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("attempts", models.SmallIntegerField(default=0)),
                ("tried_at", models.DateTimeField(null=True)),
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("reposts", models.BooleanField(db_default=True, default=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "followee",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "follower",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("reposts", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "followee",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "follower",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
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
        migrations.CreateModel(
            name="Tag",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100)),
                ("epoch", models.BigIntegerField(db_default=storage.draws.Draw())),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("name",), name="tag_name")],
            },
        ),
        migrations.CreateModel(
            name="TagFollow",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "tag",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="relations.tag",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["user", "-id"], name="tag_follow_page")],
                "constraints": [models.UniqueConstraint(fields=("user", "tag"), name="tag_follow_pair")],
            },
        ),
        # CreateModel adds constraints at the end of the migration, but the foreign key below needs this one.
        migrations.AddConstraint(
            "follow", models.UniqueConstraint(fields=["follower", "followee"], name="follow_pair")
        ),
        migrations.RunSQL((SQL / "list_members.sql").read_text()),
    ]
