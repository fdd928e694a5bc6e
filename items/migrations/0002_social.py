"""Likes, threads, staged counts, and reposts of which there is one a sender."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

ROOTS = """
    WITH RECURSIVE thread AS (
        SELECT r.id, r.reply_to_id AS root_id FROM items_item r JOIN items_item p ON p.id = r.reply_to_id
        WHERE p.reply_to_id IS NULL
        UNION ALL SELECT r.id, t.root_id FROM items_item r JOIN thread t ON r.reply_to_id = t.id
    )
    UPDATE items_item i SET root_id = t.root_id FROM thread t WHERE t.id = i.id
"""
# A reply counts under its parent and under the root of its thread.
COUNTS = """
    INSERT INTO items_itemcounts (item_id, likes, replies, circle_replies, reposts)
    SELECT above, 0, count(*) FILTER (WHERE kind = 'public'), count(*) FILTER (WHERE kind IN ('followers', 'mutuals')),
        count(*) FILTER (WHERE kind = 'repost')
    FROM (
        SELECT unnest(CASE WHEN reply_to_id = root_id THEN ARRAY[root_id] ELSE ARRAY[reply_to_id, root_id] END) AS above,
            visibility AS kind
        FROM items_item WHERE status = 'published' AND reply_to_id IS NOT NULL AND visibility <> 'self'
        UNION ALL SELECT repost_of_id, 'repost' FROM items_item WHERE status = 'published' AND repost_of_id IS NOT NULL
    ) counted GROUP BY above
"""


def counts() -> list[tuple[str, models.Field]]:
    kinds = ("likes", "replies", "circle_replies", "reposts")
    return [(kind, models.IntegerField(default=0)) for kind in kinds]


class Migration(migrations.Migration):
    dependencies = [
        ("items", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            "item",
            "type",
            models.CharField(
                choices=[
                    ("text", "Text"),
                    ("image", "Image"),
                    ("video", "Video"),
                    ("link", "Link"),
                    ("repost", "Repost"),
                ],
                default="text",
                max_length=16,
            ),
        ),
        migrations.AddField(
            "item",
            "published_at",
            models.DateTimeField(
                blank=True, help_text="Where that is later than it was written.", null=True, verbose_name="seen since"
            ),
        ),
        migrations.AddField(
            "item",
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
        migrations.RunSQL(ROOTS, migrations.RunSQL.noop),
        migrations.CreateModel(
            "Like",
            [
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
        ),
        migrations.CreateModel(
            "ItemCounts",
            [
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
                *counts(),
            ],
        ),
        migrations.CreateModel(
            "CountChange",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                *counts(),
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
        migrations.RunSQL(COUNTS, migrations.RunSQL.noop),
        migrations.AddConstraint("like", models.UniqueConstraint(fields=("user", "item"), name="like_once")),
        migrations.AddIndex("like", models.Index(fields=["item", "-id"], name="like_item")),
        migrations.RemoveIndex("item", "item_timeline"),
        migrations.AddIndex(
            "item",
            models.Index(
                condition=models.Q(("reply_to", None), ("status", "published")),
                fields=["sender", "-id"],
                include=("visibility", "repost_of"),
                name="item_timeline",
            ),
        ),
        migrations.RemoveIndex("item", "item_reposts"),
        migrations.AddConstraint(
            "item",
            models.UniqueConstraint(
                condition=models.Q(("repost_of__isnull", False), ("status", "published")),
                fields=("repost_of", "sender"),
                name="item_repost_once",
            ),
        ),
        migrations.AddConstraint(
            "item",
            models.CheckConstraint(
                condition=models.Q(
                    models.Q(("reply_to", None), ("root", None)),
                    models.Q(("reply_to__isnull", False), ("root__isnull", False)),
                    _connector="OR",
                ),
                name="item_reply_has_root",
            ),
        ),
        migrations.AddIndex(
            "item",
            models.Index(condition=models.Q(("root__isnull", False)), fields=["root", "id"], name="item_thread"),
        ),
        migrations.AddIndex(
            "item",
            models.Index(
                condition=models.Q(("published_at__isnull", False)), fields=["published_at"], name="item_late"
            ),
        ),
    ]
