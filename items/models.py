"""The message table: everything that was ever said, soft-deleted, never removed."""

from typing import ClassVar, Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from accounts.models import User
from relations.models import Block, Follow


class ItemId(models.Func):
    """A new item id, made by PostgreSQL (feedsite.ids)."""

    function = "feedsite_next_id"
    arity = 0
    output_field = models.BigIntegerField()


class Status(models.TextChoices):
    PUBLISHED = "published"
    IN_REVIEW = "in_review", "in review"
    REJECTED = "rejected"
    DELETED = "deleted"


class Visibility(models.TextChoices):
    """Who may see an item. Mutuals follow each other."""

    PUBLIC = "public"
    FOLLOWERS = "followers"
    MUTUALS = "mutuals"
    SELF = "self", "only me"


class ItemType(models.TextChoices):
    TEXT = "text"
    IMAGE = "image"
    VIDEO = "video"
    LINK = "link"


class ItemQuerySet(models.QuerySet["Item"]):
    def published(self) -> Self:
        return self.filter(status=Status.PUBLISHED)

    def without_replies(self) -> Self:
        """Posts and reposts: what home and profile timelines hold."""
        return self.filter(reply_to=None)

    def by(self, sender: User) -> Self:
        return self.filter(sender=sender)

    def visible_to(self, reader: User | AnonymousUser) -> Self:
        """What `reader` may see wherever they meet it: published, sender active, no block either way, visibility met.

        A sender sees their own items in every status but deleted.
        """
        shown = Q(status=Status.PUBLISHED, sender__is_active=True)
        if not isinstance(reader, User):
            return self.filter(shown, visibility=Visibility.PUBLIC)
        follows = Exists(Follow.objects.filter(follower=reader, followee=OuterRef("sender")))
        followed_back = Exists(Follow.objects.filter(follower=OuterRef("sender"), followee=reader))
        blocked = Exists(Block.objects.filter(blocker=reader, blocked=OuterRef("sender"))) | Exists(
            Block.objects.filter(blocker=OuterRef("sender"), blocked=reader)
        )
        allowed = (
            Q(visibility=Visibility.PUBLIC)
            | (Q(visibility=Visibility.FOLLOWERS) & follows)
            | (Q(visibility=Visibility.MUTUALS) & follows & followed_back)
        )
        own = Q(sender=reader) & ~Q(status=Status.DELETED)
        return self.filter(own | (shown & allowed & ~blocked))


class Item(models.Model):
    """One message. The id is made by PostgreSQL and carries the time: it is the sort key, the score and the cursor.

    `sender` and the id never change; `status` and `visibility` do, through items.actions only.
    """

    id = models.BigIntegerField(primary_key=True, db_default=ItemId(), editable=False)
    sender = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="items", db_index=False)
    type = models.CharField(max_length=16, choices=ItemType.choices, default=ItemType.TEXT)
    title = models.CharField(max_length=200, blank=True)
    content = models.JSONField(default=dict)
    extra_info = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.PUBLISHED)
    visibility = models.CharField(max_length=16, choices=Visibility.choices, default=Visibility.PUBLIC)
    reply_to = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="replies", db_index=False
    )
    repost_of = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="reposts", db_index=False
    )
    created_at = models.GeneratedField(
        expression=models.Func("id", function="feedsite_id_time"),
        output_field=models.DateTimeField(),
        db_persist=True,
    )
    modified_at = models.DateTimeField(db_default=Now())

    objects: ClassVar[models.Manager["Item"]] = ItemQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(id__gt=0, id__lt=2**53), name="item_id_53_bits"),
        ]
        indexes = [
            # Timelines: top-k of one sender is an index-only scan.
            models.Index(
                fields=["sender", "-id"],
                include=["visibility"],
                condition=Q(status="published", reply_to=None),
                name="item_timeline",
            ),
            models.Index(fields=["sender", "-id"], name="item_sender"),
            models.Index(fields=["reply_to", "id"], condition=Q(reply_to__isnull=False), name="item_replies"),
            models.Index(fields=["repost_of", "sender"], condition=Q(repost_of__isnull=False), name="item_reposts"),
        ]

    def __str__(self) -> str:
        return f"{self.id} by {self.sender_id}"

    @property
    def text(self) -> str:
        """What people read of the content."""
        text = self.content.get("text", "")
        return text if isinstance(text, str) else ""


class IdempotencyKey(models.Model):
    """A client's name for one call of publish: a repeated call gets the item of the first."""

    sender = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of what was to be published.")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="+", db_index=False)
    created_at = models.DateTimeField(db_default=Now(), db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["sender", "key"], name="idempotency_key")]

    def __str__(self) -> str:
        return f"{self.key} of {self.sender_id}"
