from pathlib import Path

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import items.models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):
    replaces = [
        ("items", "0001_tables"),
        ("items", "0002_tag_posts"),
        ("items", "0003_tag_posts_of_before"),
        ("items", "0004_quotes"),
        ("items", "0005_quotes_of_an_item"),
        ("items", "0006_conversations"),
        ("items", "0007_conversation_index"),
        ("items", "0008_link_cards"),
        ("items", "0009_link_card_of_an_item"),
        ("items", "0010_polls"),
        ("items", "0011_scheduled_posts"),
        ("items", "0012_muted_threads"),
        ("items", "0013_filter_groups"),
    ]

    initial = True

    dependencies = [
        ("feedsite", "0001_squashed"),
        ("media", "0001_squashed"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Filter",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("phrase", models.CharField(max_length=50)),
                ("whole_word", models.BooleanField()),
                ("action", models.CharField(max_length=4)),
                ("expires_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "contexts",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16), db_default=[], default=list, size=None
                    ),
                ),
                ("group", models.BigIntegerField(null=True)),
                ("title", models.CharField(db_default="", default="", max_length=100)),
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
            name="Correspondent",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "writer_id", "reader_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "reader",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
                ),
                (
                    "writer",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="RefusedHost",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("host", models.CharField(max_length=254, unique=True)),
                ("note", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "verbose_name": "domain without previews",
                "verbose_name_plural": "domains without previews",
            },
        ),
        migrations.CreateModel(
            name="LinkCard",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("url", models.CharField(max_length=2000)),
                ("digest", models.CharField(max_length=64)),
                ("domain", models.CharField(max_length=254)),
                ("state", models.CharField(default="done", max_length=8)),
                ("asked_at", models.DateTimeField(null=True)),
                ("facts", models.JSONField(null=True)),
                ("error", models.CharField(max_length=200)),
                ("is_removed", models.BooleanField(default=False)),
                ("checked_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "picture",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="media.mediafile",
                    ),
                ),
            ],
            options={
                "verbose_name": "link preview",
                "verbose_name_plural": "link previews",
                "default_permissions": ("view", "change"),
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "done"), _negated=True),
                        fields=["state", "-id"],
                        name="link_card_waiting",
                    ),
                    models.Index(
                        fields=["domain", "asked_at"],
                        name="link_card_domain",
                        opclasses=["text_pattern_ops", "timestamptz_ops"],
                    ),
                    models.Index(
                        condition=models.Q(("picture__isnull", False)), fields=["picture"], name="link_card_picture"
                    ),
                    models.Index(fields=["checked_at"], name="link_card_checked"),
                ],
                "constraints": [models.UniqueConstraint(fields=("digest",), name="link_card_digest")],
            },
        ),
        migrations.CreateModel(
            name="Item",
            fields=[
                ("id", models.BigIntegerField(db_default=items.models.ItemId(), primary_key=True, serialize=False)),
                ("type", models.CharField(default="text", max_length=16)),
                ("title", models.CharField(max_length=200)),
                ("content", models.JSONField(default=dict)),
                ("extra_info", models.JSONField(default=dict)),
                ("media", models.JSONField(db_default=[], default=list)),
                ("status", models.CharField(default="published", max_length=16)),
                ("visibility", models.CharField(default="public", max_length=16)),
                ("published_at", models.DateTimeField(null=True)),
                (
                    "created_at",
                    models.GeneratedField(
                        db_persist=True,
                        expression=models.Func("id", function="feedsite_id_time"),
                        output_field=models.DateTimeField(),
                    ),
                ),
                ("modified_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "reply_to",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="items.item",
                    ),
                ),
                (
                    "repost_of",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="items.item",
                    ),
                ),
                (
                    "root",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="items.item",
                    ),
                ),
                (
                    "sender",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("is_quote_revoked", models.BooleanField(db_default=False, default=False)),
                ("quotable_by", models.CharField(db_default="everyone", default="everyone", max_length=16)),
                (
                    "quote_of",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="items.item",
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="items.item",
                    ),
                ),
                (
                    "link_card",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="items.linkcard",
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
                    models.Index(
                        condition=models.Q(
                            ("is_quote_revoked", False), ("quote_of__isnull", False), ("status", "published")
                        ),
                        fields=["quote_of", "-id"],
                        name="item_quotes",
                    ),
                    models.Index(
                        condition=models.Q(("conversation__isnull", False)),
                        fields=["conversation", "-id"],
                        name="item_conversation",
                    ),
                    models.Index(
                        condition=models.Q(("link_card__isnull", False)),
                        fields=["link_card", "-id"],
                        name="item_link_card",
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
                        serialize=False,
                        to="items.item",
                    ),
                ),
                ("likes", models.IntegerField(default=0)),
                ("replies", models.IntegerField(default=0)),
                ("circle_replies", models.IntegerField(default=0)),
                ("reposts", models.IntegerField(default=0)),
                ("quotes", models.IntegerField(db_default=0, default=0)),
            ],
        ),
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("key", models.CharField(max_length=255)),
                ("fingerprint", models.CharField(max_length=64)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), db_index=True),
                ),
                (
                    "sender",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to="items.item"),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("sender", "key"), name="idempotency_key")],
            },
        ),
        migrations.CreateModel(
            name="CountChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("likes", models.IntegerField(default=0)),
                ("replies", models.IntegerField(default=0)),
                ("circle_replies", models.IntegerField(default=0)),
                ("reposts", models.IntegerField(default=0)),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="items.item",
                    ),
                ),
                ("quotes", models.IntegerField(db_default=0, default=0)),
            ],
        ),
        migrations.CreateModel(
            name="Bookmark",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
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
                        to="items.item",
                    ),
                ),
                ("is_public_post", models.BooleanField(db_default=False)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_public_post", True)), fields=["tag", "-item"], name="item_tag_posts"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ItemVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("title", models.CharField(max_length=200)),
                ("content", models.JSONField(default=dict)),
                ("written_at", models.DateTimeField()),
                ("is_hidden", models.BooleanField(default=False)),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="items.item",
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
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "item",
                    models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, to="items.item"),
                ),
                (
                    "sender",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["sender", "-id"], name="pin_profile")],
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
        migrations.CreateModel(
            name="Participant",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "conversation_id", "user_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "conversation",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="items.item",
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
                ("last", models.BigIntegerField(null=True)),
                ("read", models.BigIntegerField()),
                ("is_request", models.BooleanField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("last__isnull", False)),
                        fields=["user", "is_request", "-last"],
                        name="participant_list",
                    ),
                    models.Index(fields=["user"], name="participant_user"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Poll",
            fields=[
                (
                    "item",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        serialize=False,
                        to="items.item",
                    ),
                ),
                ("closes_at", models.DateTimeField()),
                ("votes", django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
                ("voters", models.IntegerField(default=0)),
                ("told_to", models.BigIntegerField(default=0)),
                ("is_told", models.BooleanField(default=False)),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("is_told", False)), fields=["closes_at"], name="poll_due")
                ],
            },
        ),
        migrations.CreateModel(
            name="Vote",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "item_id", "user_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "choices",
                    django.contrib.postgres.fields.ArrayField(base_field=models.SmallIntegerField(), size=None),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "item",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="items.item",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ScheduledPost",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("post", models.JSONField()),
                ("publish_at", models.DateTimeField()),
                ("key", models.CharField(max_length=255)),
                ("failure", models.CharField(default="", max_length=16)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "sender",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("failure", "")), fields=["publish_at"], name="scheduled_due")
                ],
                "constraints": [models.UniqueConstraint(fields=("sender", "key"), name="scheduled_once")],
            },
        ),
        migrations.CreateModel(
            name="MutedThread",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "user_id", "root_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "root",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="items.item",
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
        ),
        migrations.RunSQL((SQL / "tag_posts.sql").read_text()),
    ]
