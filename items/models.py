"""The message table: everything that was ever said, soft-deleted, never removed."""

from datetime import datetime
from typing import ClassVar, Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import Q
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from accounts.models import QuotableBy, User
from items.visibility import public_post, visible
from storage.ids import MILLISECOND
from web import hashtags

PHRASE_LENGTH = 50


class ItemId(models.Func):
    """A new item id, made by PostgreSQL (storage.ids)."""

    function = "feedsite_next_id"
    arity = 0
    output_field = models.BigIntegerField()


class Status(models.TextChoices):
    """The states of an item."""

    PUBLISHED = "published", _("published")
    IN_REVIEW = "in_review", _("in review")
    REJECTED = "rejected", _("rejected")
    DELETED = "deleted", _("deleted")


class Visibility(models.TextChoices):
    """The readers who may see an item. Mutuals follow each other. Those of a private mention are in `Participant`."""

    PUBLIC = "public", _("public")
    FOLLOWERS = "followers", _("followers")
    MUTUALS = "mutuals", _("mutuals")
    SELF = "self", _("only the author")
    MENTIONED = "mentioned", _("people who are mentioned")


LISTED = [choice for choice in Visibility.values if choice != Visibility.MENTIONED]
"""The visibilities of what stands in timelines, on profiles and in outboxes: private mentions stand in none."""


class ItemType(models.TextChoices):
    """The types of an item's content."""

    TEXT = "text", _("text")
    IMAGE = "image", _("image")
    VIDEO = "video", _("video")
    LINK = "link", _("link")
    ARTICLE = "article", _("article")
    REPOST = "repost", _("repost")


AUTHORED = [choice for choice in ItemType.choices if choice[0] != ItemType.REPOST]
"""The types of what people write."""


class ItemQuerySet(models.QuerySet["Item"]):
    """Verbs for reading items.

    Those that ask items.visibility name the table: they are not for a subquery of a query of items, in which it has
    another alias.
    """

    def published(self) -> Self:
        """Published items."""
        return self.filter(status=Status.PUBLISHED)

    def public_posts(self) -> Self:
        """Posts that all may see, but for their senders (items.visibility)."""
        return self.filter(RawSQL(public_post("items_item"), [], output_field=models.BooleanField()))  # noqa: S611

    def visible_to(self, reader: User | AnonymousUser) -> Self:
        """The items that `reader` may see wherever they meet them (items.visibility)."""
        rule = visible("items_item", "s", str(int(reader.pk or 0)))
        seen = f"EXISTS (SELECT FROM accounts_user s WHERE s.id = items_item.sender_id AND {rule})"
        return self.filter(RawSQL(seen, [], output_field=models.BooleanField()))  # noqa: S611 (a constant and a number)


def was_edited(created_at: datetime, modified_at: datetime) -> bool:
    """Whether an item was changed after it was made: the time in its id has no microseconds, the other time has."""
    return modified_at - created_at >= MILLISECOND


class Item(models.Model):
    """One message. The id is made by PostgreSQL and carries the time: it is the sort key, the score and the cursor.

    `sender` and the id never change; `status` and `visibility` do, through items.actions only. A reply has a parent
    (`reply_to`) and the item that the thread is about (`root`), which is no reply; a repost has neither, says nothing
    itself, and is never a repost of a repost. A quote (`quote_of`) is a post or reply with words of its own that shows
    another item inside, until that item's sender takes it off (`is_quote_revoked`); it never quotes a repost.
    A private mention begins a conversation, or has the item that began its own (`conversation`).
    """

    id = models.BigIntegerField("ID", primary_key=True, db_default=ItemId(), editable=False)
    sender = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="items",
        db_index=False,
        verbose_name=_("sender"),
    )
    type = models.CharField(_("type"), max_length=16, choices=ItemType.choices, default=ItemType.TEXT)
    title = models.CharField(_("title"), max_length=200, blank=True)
    content = models.JSONField(default=dict)
    extra_info = models.JSONField(default=dict, blank=True)
    media = models.JSONField(
        default=list, db_default=[], blank=True, editable=False, help_text="The facts of its media (media.objects)."
    )
    status = models.CharField(_("status"), max_length=16, choices=Status.choices, default=Status.PUBLISHED)
    visibility = models.CharField(_("visible to"), max_length=16, choices=Visibility.choices, default=Visibility.PUBLIC)
    reply_to = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="replies", db_index=False
    )
    repost_of = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="reposts", db_index=False
    )
    root = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="thread", db_index=False
    )
    # Items are never removed, and checking that would look through the whole table once.
    conversation = models.ForeignKey(
        "self",
        on_delete=models.DO_NOTHING,
        null=True,
        blank=True,
        editable=False,
        related_name="messages",
        db_index=False,
        db_constraint=False,
    )
    # Items are never removed, and checking that would lock the row of one that many quote.
    quote_of = models.ForeignKey(
        "self",
        on_delete=models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="quotes",
        db_index=False,
        db_constraint=False,
    )
    is_quote_revoked = models.BooleanField(default=False, db_default=False, editable=False)
    quotable_by = models.CharField(
        _("who can quote it"),
        max_length=16,
        choices=QuotableBy.choices,
        default=QuotableBy.EVERYONE,
        db_default=QuotableBy.EVERYONE,
    )
    published_at = models.DateTimeField(
        _("seen since"), null=True, blank=True, help_text=_("Where that is later than it was written.")
    )
    created_at = models.GeneratedField(
        expression=models.Func("id", function="feedsite_id_time"),
        output_field=models.DateTimeField(),
        db_persist=True,
        verbose_name=_("written"),
    )
    modified_at = models.DateTimeField(_("last written"), db_default=Now())

    objects: ClassVar[models.Manager["Item"]] = ItemQuerySet.as_manager()

    class Meta:
        verbose_name = _("item")
        verbose_name_plural = _("items")
        constraints = [
            models.CheckConstraint(condition=Q(id__gt=0, id__lt=2**53), name="item_id_53_bits"),
            models.CheckConstraint(
                condition=Q(reply_to=None, root=None) | Q(reply_to__isnull=False, root__isnull=False),
                name="item_reply_has_root",
            ),
            models.UniqueConstraint(
                fields=["repost_of", "sender"],
                condition=Q(status="published", repost_of__isnull=False),
                name="item_repost_once",
            ),
        ]
        indexes = [
            # Timelines: top-k of one sender is an index-only scan of what all followers may see, ...
            models.Index(
                fields=["sender", "-id"],
                include=["repost_of"],
                condition=Q(status="published", reply_to=None, visibility__in=["public", "followers"]),
                name="item_followers",
            ),
            # ... which has an index of the posts alone for followers who leave the reposts out, ...
            models.Index(
                fields=["sender", "-id"],
                condition=Q(status="published", reply_to=None, repost_of=None, visibility__in=["public", "followers"]),
                name="item_posts",
            ),
            # ... and of each circle among them, in an index that is small where most items are public, ...
            models.Index(
                fields=["sender", "visibility", "-id"],
                include=["repost_of"],
                condition=Q(status="published", reply_to=None, visibility__in=["mutuals", "self"]),
                name="item_circles",
            ),
            # ... and on a profile of one visibility: no reader passes what they may not see, however much there is.
            models.Index(
                fields=["sender", "visibility", "-id"],
                include=["repost_of"],
                condition=Q(status="published", reply_to=None),
                name="item_visibility",
            ),
            models.Index(fields=["sender", "-id"], name="item_sender"),
            models.Index(
                fields=["sender", "-id"],
                condition=Q(status="published", reply_to__isnull=False),
                name="item_replies_of",
            ),
            models.Index(
                fields=["sender", "-id"],
                condition=Q(status__in=["in_review", "rejected"]),
                name="item_unpublished",
            ),
            # ... and of one visibility those that have pictures or a video.
            models.Index(
                fields=["sender", "visibility", "-id"],
                condition=Q(status="published") & ~Q(media=[]),
                name="item_pictured",
            ),
            models.Index(fields=["reply_to", "id"], condition=Q(reply_to__isnull=False), name="item_replies"),
            models.Index(fields=["root", "id"], condition=Q(root__isnull=False), name="item_thread"),
            models.Index(fields=["sender", "root"], condition=Q(root__isnull=False), name="item_answered"),
            models.Index(
                fields=["quote_of", "-id"],
                condition=Q(status="published", quote_of__isnull=False, is_quote_revoked=False),
                name="item_quotes",
            ),
            models.Index(fields=["published_at"], condition=Q(published_at__isnull=False), name="item_late"),
            models.Index(
                fields=["conversation", "-id"], condition=Q(conversation__isnull=False), name="item_conversation"
            ),
            # Recommended to all readers: the newest posts are an index-only scan, whatever lies between them.
            models.Index(
                fields=["-id"],
                include=["sender"],
                condition=Q(status="published", visibility="public", reply_to=None, repost_of=None),
                name="item_public",
            ),
        ]

    def __str__(self) -> str:
        return str(_("item %(id)s") % {"id": self.id})

    @property
    def is_private(self) -> bool:
        """Whether it is a private mention."""
        return self.visibility == Visibility.MENTIONED

    @property
    def text(self) -> str:
        """The text of the content, as people read it."""
        text = self.content.get("text", "")
        return text if isinstance(text, str) else ""

    @property
    def is_sensitive(self) -> bool:
        """Whether its pictures are veiled until a reader asks for them; so are those under a warning."""
        return self.content.get("sensitive") is True or bool(self.content.get("warning"))


class Participant(models.Model):
    """A person in a conversation of private mentions, and what they see of it in their list. Rows are written with the
    first message, for its sender and those whom it mentions; nobody joins later (items.recipients).
    """

    pk = models.CompositePrimaryKey("conversation_id", "user_id")
    conversation = models.ForeignKey(
        Item, on_delete=models.DO_NOTHING, related_name="participants", db_index=False, db_constraint=False
    )
    """The item that began it."""
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    last = models.BigIntegerField(null=True, help_text="The newest message that lists the conversation; null: none.")
    read = models.BigIntegerField(help_text="The newest message that the person has seen; 0: none.")
    is_request = models.BooleanField(help_text="Whether it is listed apart, because only strangers write in it.")

    class Meta:
        indexes = [
            models.Index(
                fields=["user", "is_request", "-last"], condition=Q(last__isnull=False), name="participant_list"
            ),
            models.Index(fields=["user"], name="participant_user"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.conversation_id}"


class Correspondent(models.Model):
    """`writer` has written to `reader` in private mentions: so `reader` is no stranger to them."""

    pk = models.CompositePrimaryKey("writer_id", "reader_id")
    writer = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    reader = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    def __str__(self) -> str:
        return f"{self.writer_id} wrote to {self.reader_id}"


class Like(models.Model):
    """`user` likes `item`. Only this row says so; its addition to the count is staged beside it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="likes", db_index=False)
    # Items are never removed, and checking that on every like would lock the row of a viral one.
    item = models.ForeignKey(
        Item, on_delete=models.DO_NOTHING, related_name="likes", db_index=False, db_constraint=False
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "item"], name="like_once")]
        indexes = [
            models.Index(fields=["item", "-id"], name="like_item"),
            models.Index(fields=["user", "-id"], name="like_page"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} likes {self.item_id}"


class Bookmark(models.Model):
    """`user` keeps `item` for later. It is counted nowhere, and no other user learns of it."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="bookmarks", db_index=False
    )
    # As of a like.
    item = models.ForeignKey(Item, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "item"], name="bookmark_once")]
        indexes = [models.Index(fields=["user", "-id"], name="bookmark_page")]

    def __str__(self) -> str:
        return f"{self.user_id} keeps {self.item_id}"


class ItemCounts(models.Model):
    """The folded counts of an item; they are exact together with the changes not yet folded into them.

    `replies` are the public ones; `circle_replies`, those for followers or mutuals, count under items that are not
    public themselves, so that no number tells strangers of what they cannot see. `quotes` are the public ones.
    """

    item = models.OneToOneField(
        Item, on_delete=models.DO_NOTHING, primary_key=True, related_name="counted", db_constraint=False
    )
    likes = models.IntegerField(default=0)
    replies = models.IntegerField(default=0)
    circle_replies = models.IntegerField(default=0)
    reposts = models.IntegerField(default=0)
    quotes = models.IntegerField(default=0, db_default=0)

    def __str__(self) -> str:
        return f"counts of {self.item_id}"


class CountChange(models.Model):
    """A change of an item's counts, not yet folded. Insert-only between folds: a viral item has no hot row."""

    item = models.ForeignKey(Item, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False)
    likes = models.IntegerField(default=0)
    replies = models.IntegerField(default=0)
    circle_replies = models.IntegerField(default=0)
    reposts = models.IntegerField(default=0)
    quotes = models.IntegerField(default=0, db_default=0)

    def __str__(self) -> str:
        return f"change of {self.item_id}"


class ItemDocument(models.Model):
    """The words of an item as search compares them (items.words), beside the item: timelines do not read past them.

    Written with the item by items.indexing.index. Reposts, and items without words, have none.

    The pending list of the index is short (512 kB), because every search reads it.
    """

    item = models.OneToOneField(
        Item, on_delete=models.DO_NOTHING, primary_key=True, related_name="+", db_constraint=False
    )
    document = SearchVectorField()

    class Meta:
        indexes = [
            # New words wait in a list of this many kB, which every search reads, and are sorted in together: publishing
            # costs 0.05 ms more than without the index, imports a sixth of what they would cost word by word.
            GinIndex(fields=["document"], gin_pending_list_limit=512, name="item_words"),
        ]

    def __str__(self) -> str:
        return f"words of {self.item_id}"


class ItemTag(models.Model):
    """An item's text has this hashtag, in its canonical form (web.hashtags.canonical_tag)."""

    pk = models.CompositePrimaryKey("tag", "item_id")
    tag = models.CharField(max_length=hashtags.LENGTH)
    item = models.ForeignKey(Item, on_delete=models.DO_NOTHING, related_name="tags", db_constraint=False)
    is_public_post = models.BooleanField(
        db_default=False, editable=False, help_text="Whether the item is a public post; kept by triggers."
    )

    class Meta:
        indexes = [
            # Homes of those who follow a hashtag: top-k of its public posts is an index-only scan.
            models.Index(fields=["tag", "-item"], condition=Q(is_public_post=True), name="item_tag_posts"),
        ]

    def __str__(self) -> str:
        return f"#{self.tag} in {self.item_id}"


class ItemVersion(models.Model):
    """An item's title and content before an edit (items.versions)."""

    item = models.ForeignKey(
        Item, on_delete=models.DO_NOTHING, related_name="versions", db_index=False, db_constraint=False
    )
    title = models.CharField(max_length=200, blank=True)
    content = models.JSONField(default=dict)
    written_at = models.DateTimeField(help_text="When the item began to say so.")
    is_hidden = models.BooleanField(default=False, help_text="Whether only the sender sees it.")

    class Meta:
        indexes = [models.Index(fields=["item", "-id"], name="item_versions")]

    def __str__(self) -> str:
        return f"version of {self.item_id}"


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


class FilterAction(models.TextChoices):
    """The fate of an item that a filter matches: folded under the phrase, or left out of pages."""

    WARN = "warn", _("Fold it, with a button that shows it")
    HIDE = "hide", _("Leave it out")


class Filter(models.Model):
    """A phrase that its owner does not want to read, or wants to be warned of (items.filters)."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    phrase = models.CharField(max_length=PHRASE_LENGTH)
    whole_word = models.BooleanField()
    action = models.CharField(max_length=4, choices=FilterAction.choices)
    expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(action__in=FilterAction.values), name="filter_action")]
        indexes = [
            models.Index(fields=["owner", "-id"], name="filter_page"),
            models.Index(fields=["expires_at"], name="filter_expiring", condition=Q(expires_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.owner_id}: {self.phrase}"


class Pin(models.Model):
    """A post that its sender shows first on their profile (items.pins)."""

    item = models.OneToOneField(Item, on_delete=models.CASCADE, related_name="+")
    sender = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    """The item's."""
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["sender", "-id"], name="pin_profile")]

    def __str__(self) -> str:
        return f"{self.sender_id}: {self.item_id}"
