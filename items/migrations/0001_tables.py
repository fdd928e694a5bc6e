import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import items.models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("feedsite", "0001_functions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Item",
            fields=[
                (
                    "id",
                    models.BigIntegerField(
                        db_default=items.models.ItemId(),
                        editable=False,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "type",
                    models.CharField(
                        choices=[
                            ("text", "text"),
                            ("image", "image"),
                            ("video", "video"),
                            ("link", "link"),
                            ("article", "article"),
                            ("repost", "repost"),
                        ],
                        default="text",
                        max_length=16,
                        verbose_name="type",
                    ),
                ),
                ("title", models.CharField(blank=True, max_length=200, verbose_name="title")),
                ("content", models.JSONField(default=dict)),
                ("extra_info", models.JSONField(blank=True, default=dict)),
                (
                    "media",
                    models.JSONField(
                        blank=True,
                        db_default=[],
                        default=list,
                        editable=False,
                        help_text="The facts of its media (media.objects).",
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("published", "published"),
                            ("in_review", "in review"),
                            ("rejected", "rejected"),
                            ("deleted", "deleted"),
                        ],
                        default="published",
                        max_length=16,
                        verbose_name="status",
                    ),
                ),
                (
                    "visibility",
                    models.CharField(
                        choices=[
                            ("public", "public"),
                            ("followers", "followers"),
                            ("mutuals", "mutuals"),
                            ("self", "only the author"),
                        ],
                        default="public",
                        max_length=16,
                        verbose_name="visible to",
                    ),
                ),
                (
                    "published_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="Only if later than it was written.",
                        null=True,
                        verbose_name="visible since",
                    ),
                ),
                (
                    "created_at",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Func("id", function="feedsite_id_time"),
                        output_field=models.DateTimeField(),
                        verbose_name="written",
                    ),
                ),
                (
                    "modified_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="last written"
                    ),
                ),
                (
                    "reply_to",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="replies",
                        to="items.item",
                    ),
                ),
                (
                    "repost_of",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reposts",
                        to="items.item",
                    ),
                ),
                (
                    "root",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="thread",
                        to="items.item",
                    ),
                ),
                (
                    "sender",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="items",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="author",
                    ),
                ),
            ],
            options={
                "verbose_name": "post",
                "verbose_name_plural": "posts",
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            ("reply_to", None), ("status", "published"), ("visibility__in", ["public", "followers"])
                        ),
                        fields=["sender", "-id"],
                        include=("repost_of",),
                        name="item_followers",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("reply_to", None),
                            ("repost_of", None),
                            ("status", "published"),
                            ("visibility__in", ["public", "followers"]),
                        ),
                        fields=["sender", "-id"],
                        name="item_posts",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("reply_to", None), ("status", "published"), ("visibility__in", ["mutuals", "self"])
                        ),
                        fields=["sender", "visibility", "-id"],
                        include=("repost_of",),
                        name="item_circles",
                    ),
                    models.Index(
                        condition=models.Q(("reply_to", None), ("status", "published")),
                        fields=["sender", "visibility", "-id"],
                        include=("repost_of",),
                        name="item_visibility",
                    ),
                    models.Index(fields=["sender", "-id"], name="item_sender"),
                    models.Index(
                        condition=models.Q(("reply_to__isnull", False), ("status", "published")),
                        fields=["sender", "-id"],
                        name="item_replies_of",
                    ),
                    models.Index(
                        condition=models.Q(("status__in", ["in_review", "rejected"])),
                        fields=["sender", "-id"],
                        name="item_unpublished",
                    ),
                    models.Index(
                        condition=models.Q(("status", "published"), models.Q(("media", []), _negated=True)),
                        fields=["sender", "visibility", "-id"],
                        name="item_pictured",
                    ),
                    models.Index(
                        condition=models.Q(("reply_to__isnull", False)), fields=["reply_to", "id"], name="item_replies"
                    ),
                    models.Index(
                        condition=models.Q(("root__isnull", False)), fields=["root", "id"], name="item_thread"
                    ),
                    models.Index(
                        condition=models.Q(("root__isnull", False)), fields=["sender", "root"], name="item_answered"
                    ),
                    models.Index(
                        condition=models.Q(("published_at__isnull", False)), fields=["published_at"], name="item_late"
                    ),
                    models.Index(
                        condition=models.Q(
                            ("reply_to", None), ("repost_of", None), ("status", "published"), ("visibility", "public")
                        ),
                        fields=["-id"],
                        include=("sender",),
                        name="item_public",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id__gt", 0), ("id__lt", 9007199254740992)), name="item_id_53_bits"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("reply_to", None), ("root", None)),
                            models.Q(("reply_to__isnull", False), ("root__isnull", False)),
                            _connector="OR",
                        ),
                        name="item_reply_has_root",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("repost_of__isnull", False), ("status", "published")),
                        fields=("repost_of", "sender"),
                        name="item_repost_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ItemCounts",
            fields=[
                (
                    "item",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="counted",
                        serialize=False,
                        to="items.item",
                    ),
                ),
                ("likes", models.IntegerField(default=0)),
                ("replies", models.IntegerField(default=0)),
                ("circle_replies", models.IntegerField(default=0)),
                ("reposts", models.IntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=255)),
                ("fingerprint", models.CharField(help_text="SHA-256 of what was to be published.", max_length=64)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), db_index=True),
                ),
                (
                    "sender",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="items.item"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("sender", "key"), name="idempotency_key")],
            },
        ),
        migrations.CreateModel(
            name="CountChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("likes", models.IntegerField(default=0)),
                ("replies", models.IntegerField(default=0)),
                ("circle_replies", models.IntegerField(default=0)),
                ("reposts", models.IntegerField(default=0)),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="items.item",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Bookmark",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="bookmarks",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="items.item",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["user", "-id"], name="bookmark_page")],
                "constraints": [models.UniqueConstraint(fields=("user", "item"), name="bookmark_once")],
            },
        ),
        migrations.CreateModel(
            name="ItemTag",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tag", "item_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("tag", models.CharField(max_length=100)),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="tags",
                        to="items.item",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ItemVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("title", models.CharField(blank=True, max_length=200)),
                ("content", models.JSONField(default=dict)),
                ("written_at", models.DateTimeField(help_text="When the item began to say so.")),
                ("is_hidden", models.BooleanField(default=False, help_text="Whether only the sender sees it.")),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="versions",
                        to="items.item",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["item", "-id"], name="item_versions")],
            },
        ),
        migrations.CreateModel(
            name="Like",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="likes",
                        to="items.item",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="likes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["item", "-id"], name="like_item"),
                    models.Index(fields=["user", "-id"], name="like_page"),
                ],
                "constraints": [models.UniqueConstraint(fields=("user", "item"), name="like_once")],
            },
        ),
        migrations.CreateModel(
            name="Pin",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "item",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="items.item"
                    ),
                ),
                (
                    "sender",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["sender", "-id"], name="pin_profile")],
            },
        ),
        migrations.CreateModel(
            name="Filter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("phrase", models.CharField(max_length=50)),
                ("whole_word", models.BooleanField()),
                (
                    "action",
                    models.CharField(
                        choices=[("warn", "Hide behind a warning"), ("hide", "Hide completely")],
                        max_length=4,
                    ),
                ),
                ("expires_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "owner",
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
                    models.Index(fields=["owner", "-id"], name="filter_page"),
                    models.Index(
                        condition=models.Q(("expires_at__isnull", False)), fields=["expires_at"], name="filter_expiring"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("action__in", ["warn", "hide"])), name="filter_action")
                ],
            },
        ),
        migrations.CreateModel(
            name="ItemDocument",
            fields=[
                (
                    "item",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="items.item",
                    ),
                ),
                ("document", django.contrib.postgres.search.SearchVectorField()),
            ],
            options={
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["document"], gin_pending_list_limit=512, name="item_words"
                    )
                ],
            },
        ),
    ]
