"""Timelines read one visibility at a time; built beside writers, and begun anew where it was interrupted."""

from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations, models

from storage.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("items", "0005_discoverable")]

    operations = [
        AddIndexConcurrently(
            model_name="item",
            index=models.Index(
                condition=models.Q(
                    ("reply_to", None), ("status", "published"), ("visibility__in", ["public", "followers"])
                ),
                fields=["sender", "-id"],
                include=("repost_of",),
                name="item_followers",
            ),
        ),
        AddIndexConcurrently(
            model_name="item",
            index=models.Index(
                condition=models.Q(
                    ("reply_to", None), ("status", "published"), ("visibility__in", ["mutuals", "self"])
                ),
                fields=["sender", "visibility", "-id"],
                include=("repost_of",),
                name="item_circles",
            ),
        ),
        AddIndexConcurrently(
            model_name="item",
            index=models.Index(
                condition=models.Q(("reply_to", None), ("status", "published")),
                fields=["sender", "visibility", "-id"],
                include=("repost_of",),
                name="item_visibility",
            ),
        ),
        AddIndexConcurrently(
            model_name="item",
            index=models.Index(
                condition=models.Q(("reply_to__isnull", False), ("status", "published")),
                fields=["sender", "-id"],
                name="item_replies_of",
            ),
        ),
        AddIndexConcurrently(
            model_name="item",
            index=models.Index(
                condition=models.Q(("status__in", ["in_review", "rejected"])),
                fields=["sender", "-id"],
                name="item_unpublished",
            ),
        ),
        RemoveIndexConcurrently(model_name="item", name="item_timeline"),
    ]
