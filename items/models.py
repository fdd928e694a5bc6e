"""The items table: everything ever published. Items are soft-deleted, never removed."""

from datetime import datetime
from typing import ClassVar, Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import Q
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.models import QuotableBy, RepliableBy, User
from items.content import text_in
from items.visibility import public_post, visible
from media.models import MediaFile
from storage.ids import MILLISECOND
from web import hashtags

PHRASE_LENGTH = 50
URL_LENGTH = 2_000
DOMAIN_LENGTH = 254


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
    """Who may see an item. Mutuals follow each other."""

    PUBLIC = "public", _("public")
    FOLLOWERS = "followers", _("followers")
    MUTUALS = "mutuals", _("mutuals")
    SELF = "self", _("only the author")
    MENTIONED = "mentioned", _("people who are mentioned")


UNCOUNTED = "True if counts leave it out, because its user is hidden; else null, which takes no room."

LISTED = [choice for choice in Visibility.values if choice != Visibility.MENTIONED]
"""The visibilities in timelines, profiles and outboxes: all but private mentions. The widest first."""


def is_within(inner: str, outer: str) -> bool:
    """Whether a sender's audience is another of theirs or a part of it. Private mentions share theirs with nothing."""
    return {inner, outer} <= {*LISTED} and LISTED.index(inner) >= LISTED.index(outer)


OPEN_TO_ALL = Q(visibility=Visibility.PUBLIC) & (Q(root=None) | Q(root__visibility=Visibility.PUBLIC))
"""Whether an item is for all, and its thread, too. Whatever its state."""


class ItemType(models.TextChoices):
    """The types of an item's content."""

    TEXT = "text", _("text")
    IMAGE = "image", _("image")
    VIDEO = "video", _("video")
    LINK = "link", _("link")
    ARTICLE = "article", _("article")
    POLL = "poll", _("poll")
    REPOST = "repost", _("repost")


AUTHORED = [choice for choice in ItemType.choices if choice[0] != ItemType.REPOST]
"""All types but reposts."""


class ItemQuerySet(models.QuerySet["Item"]):
    """Reads of items. In a subquery of items the alias of items.visibility differs."""

    def published(self) -> Self:
        return self.filter(status=Status.PUBLISHED)

    def public_posts(self) -> Self:
        """Public posts, of inactive senders too."""
        return self.filter(RawSQL(public_post("items_item"), [], output_field=models.BooleanField()))  # noqa: S611

    def visible_to(self, reader: User | AnonymousUser) -> Self:
        """The items that `reader` may see."""
        rule = visible("items_item", "s", str(int(reader.pk or 0)))
        seen = f"EXISTS (SELECT FROM accounts_user s WHERE s.id = items_item.sender_id AND {rule})"
        return self.filter(RawSQL(seen, [], output_field=models.BooleanField()))  # noqa: S611 (a constant and a number)


def was_edited(created_at: datetime, modified_at: datetime) -> bool:
    """Whether it was edited. `created_at` has no microseconds."""
    return modified_at - created_at >= MILLISECOND


class Item(models.Model):
    """A post, reply, quote, repost or private mention. PostgreSQL makes the id. It contains the time and is sort key,
    score and cursor.

    `sender` and id never change, `status` and `visibility` only through items.actions. A reply has a parent and the
    `root` of its thread. A repost has neither, no content, and is never of a repost. A quote has content and shows
    another item, never a repost, until revoked. A private mention begins a conversation, or names the item that began
    it.
    """

    may_ring = True
    """False if the statement that inserted the item found no bell of its sender."""
    stored: tuple[str, str] | None = None
    """`content` and `extra_info` as PostgreSQL writes them, of an item that this process has just inserted."""

    id = models.BigIntegerField("ID", primary_key=True, db_default=ItemId(), editable=False)
    sender = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="items",
        db_index=False,
        verbose_name=_("author"),
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
    # No constraint: adding one would scan the whole table.
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
    # No constraint: checking it would lock the row of a popular item.
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
    repliable_by = models.CharField(
        _("who can reply"),
        max_length=16,
        choices=RepliableBy.choices,
        default=RepliableBy.EVERYONE,
        db_default=RepliableBy.EVERYONE,
    )
    repliers = ArrayField(
        models.BigIntegerField(), null=True, editable=False, help_text="Who is mentioned, if only they may reply."
    )
    is_continued = models.BooleanField(
        null=True, editable=False, help_text="True if it was published with a reply that goes on; else null."
    )
    # As of a quote.
    link_card = models.ForeignKey(
        "LinkCard",
        on_delete=models.DO_NOTHING,
        null=True,
        blank=True,
        editable=False,
        related_name="items",
        db_index=False,
        db_constraint=False,
    )
    uncounted = models.BooleanField(null=True, editable=False, help_text=UNCOUNTED)
    published_at = models.DateTimeField(
        _("visible since"), null=True, blank=True, help_text=_("Only if later than it was written.")
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
        verbose_name = _("post")
        verbose_name_plural = _("posts")
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
            # Timelines read a sender's newest items by an index-only scan of what all followers may see.
            models.Index(
                fields=["sender", "-id"],
                include=["repost_of"],
                condition=Q(status="published", reply_to=None, visibility__in=["public", "followers"]),
                name="item_followers",
            ),
            # The same without reposts, for followers who hide them.
            models.Index(
                fields=["sender", "-id"],
                condition=Q(status="published", reply_to=None, repost_of=None, visibility__in=["public", "followers"]),
                name="item_posts",
            ),
            # The same for mutuals and the sender: small, because most items are public.
            models.Index(
                fields=["sender", "visibility", "-id"],
                include=["repost_of"],
                condition=Q(status="published", reply_to=None, visibility__in=["mutuals", "self"]),
                name="item_circles",
            ),
            # Profiles scan one visibility at a time, so readers never pass items that they may not see.
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
            # The profile's items with media.
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
            models.Index(fields=["link_card", "-id"], condition=Q(link_card__isnull=False), name="item_link_card"),
            # Discover reads these by an index-only scan.
            models.Index(
                fields=["-id"],
                include=["sender"],
                condition=Q(status="published", visibility="public", reply_to=None, repost_of=None),
                name="item_public",
            ),
        ]

    def __str__(self) -> str:
        return str(_("post %(id)s") % {"id": self.id})

    @property
    def is_open_to_all(self) -> bool:
        """The same as `OPEN_TO_ALL`."""
        return self.visibility == Visibility.PUBLIC and (self.root is None or self.root.visibility == Visibility.PUBLIC)

    @property
    def is_private(self) -> bool:
        """Whether it is a private mention."""
        return self.visibility == Visibility.MENTIONED

    @property
    def text(self) -> str:
        """The text of the content."""
        return text_in(self.content)

    @property
    def is_sensitive(self) -> bool:
        """Whether the pictures are hidden at first."""
        return self.content.get("sensitive") is True or bool(self.content.get("warning"))


class CardState(models.TextChoices):
    """Whether a link card's page is to be read, is being read, or was."""

    WAITING = "waiting", _("waiting")
    ASKED = "asked", _("being read")
    DONE = "done", pgettext_lazy("link card", "read")


class LinkCard(models.Model):
    """A page elsewhere that public items link to. Without `facts` it shows nothing: unread, silent, or removed by
    staff.
    """

    url = models.CharField(_("address"), max_length=URL_LENGTH)
    digest = models.CharField(max_length=64, help_text="SHA-256 of the address.")
    domain = models.CharField(max_length=DOMAIN_LENGTH, help_text="The host, its parts turned round: com.example.www.")
    state = models.CharField(_("state"), max_length=8, choices=CardState.choices, default=CardState.DONE)
    asked_at = models.DateTimeField(pgettext_lazy("link card", "asked"), null=True)
    facts = models.JSONField(null=True, help_text="What is shown (items.bodies.LinkFacts).")
    picture = models.ForeignKey(
        MediaFile, on_delete=models.DO_NOTHING, null=True, related_name="+", db_constraint=False, db_index=False
    )
    error = models.CharField(_("error"), max_length=200, blank=True)
    is_removed = models.BooleanField(_("removed"), default=False, help_text=_("Removed by moderators for good."))
    checked_at = models.DateTimeField(db_default=Now(), help_text="When it was last looked for items that have it.")

    class Meta:
        verbose_name = _("link preview")
        verbose_name_plural = _("link previews")
        default_permissions = ("view", "change")
        constraints = [models.UniqueConstraint(fields=["digest"], name="link_card_digest")]
        indexes = [
            models.Index(fields=["state", "-id"], condition=~Q(state="done"), name="link_card_waiting"),
            # The cards of a host and those below are a range.
            models.Index(
                fields=["domain", "asked_at"],
                opclasses=["text_pattern_ops", "timestamptz_ops"],
                name="link_card_domain",
            ),
            models.Index(fields=["picture"], condition=Q(picture__isnull=False), name="link_card_picture"),
            models.Index(fields=["checked_at"], name="link_card_checked"),
        ]

    def __str__(self) -> str:
        return self.url


class RefusedHost(models.Model):
    """A host that staff refuse: links to it and below get no card."""

    host = models.CharField(
        pgettext_lazy("web", "domain"), max_length=DOMAIN_LENGTH, unique=True, help_text=_("Includes its subdomains.")
    )
    note = models.CharField(_("note"), max_length=200, blank=True)
    created_at = models.DateTimeField(_("since"), db_default=Now())

    class Meta:
        verbose_name = _("domain without previews")
        verbose_name_plural = _("domains without previews")

    def __str__(self) -> str:
        return self.host


class Participant(models.Model):
    """A person in a conversation. Nobody joins later."""

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
            models.Index(
                fields=["user", "-last"],
                condition=Q(is_request=False, last__gt=models.F("read")),
                name="participant_unread",
            ),
            models.Index(fields=["user"], name="participant_user"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.conversation_id}"


class Correspondent(models.Model):
    """`writer` has written `reader` a private mention, or accepted one."""

    pk = models.CompositePrimaryKey("writer_id", "reader_id")
    writer = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    reader = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    def __str__(self) -> str:
        return f"{self.writer_id} wrote to {self.reader_id}"


class Like(models.Model):
    """`user` likes `item`."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="likes", db_index=False)
    # No constraint: checking it would lock the row of a viral item.
    item = models.ForeignKey(
        Item, on_delete=models.DO_NOTHING, related_name="likes", db_index=False, db_constraint=False
    )
    created_at = models.DateTimeField(db_default=Now())
    uncounted = models.BooleanField(null=True, editable=False, help_text=UNCOUNTED)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "item"], name="like_once")]
        indexes = [
            models.Index(fields=["item", "-id"], name="like_item"),
            models.Index(fields=["user", "-id"], name="like_page"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} likes {self.item_id}"


class Bookmark(models.Model):
    """`user` bookmarked `item`. Nobody else learns of it."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="bookmarks", db_index=False
    )
    # No constraint, as for likes.
    item = models.ForeignKey(Item, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "item"], name="bookmark_once")]
        indexes = [models.Index(fields=["user", "-id"], name="bookmark_page")]

    def __str__(self) -> str:
        return f"{self.user_id} keeps {self.item_id}"


class MutedThread(models.Model):
    """`user` wants no notifications of `root`'s thread."""

    pk = models.CompositePrimaryKey("user_id", "root_id")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    # No constraint, as for likes.
    root = models.ForeignKey(Item, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.user_id} without {self.root_id}"


class HiddenReply(models.Model):
    """`user`, the sender of a thread, hid a reply: it stands apart from the others, for all but its own sender."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    # No constraints, as for likes.
    reply = models.OneToOneField(
        Item, on_delete=models.DO_NOTHING, primary_key=True, related_name="+", db_constraint=False
    )
    root = models.ForeignKey(Item, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [
            models.Index(fields=["root", "reply"], name="hidden_reply_thread"),
            models.Index(fields=["user", "reply"], name="hidden_reply_user"),
        ]

    def __str__(self) -> str:
        return f"{self.reply_id} under {self.root_id}"


class Poll(models.Model):
    """The tally of a poll. After its end voters are told in the order of ids; `told_to` is the last."""

    item = models.OneToOneField(
        Item, on_delete=models.DO_NOTHING, primary_key=True, related_name="tally", db_constraint=False
    )
    closes_at = models.DateTimeField()
    votes = ArrayField(models.IntegerField())
    voters = models.IntegerField(default=0)
    told_to = models.BigIntegerField(default=0)
    is_told = models.BooleanField(default=False)

    class Meta:
        indexes = [models.Index(fields=["closes_at"], condition=Q(is_told=False), name="poll_due")]

    def __str__(self) -> str:
        return f"poll of {self.item_id}"


class Vote(models.Model):
    """`user` voted in the poll of `item`, by places from 0, for good."""

    pk = models.CompositePrimaryKey("item_id", "user_id")
    item = models.ForeignKey(
        Item, on_delete=models.DO_NOTHING, related_name="votes", db_index=False, db_constraint=False
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    choices = ArrayField(models.SmallIntegerField())
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.user_id} voted in {self.item_id}"


class ItemCounts(models.Model):
    """The folded counts of an item. `circle_replies`, for followers or mutuals, count only under items that are not
    public, so that strangers cannot infer hidden replies.
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
    """A change of counts, not yet folded. Rows are only inserted, so a viral item has no hot row."""

    item = models.ForeignKey(Item, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False)
    likes = models.IntegerField(default=0)
    replies = models.IntegerField(default=0)
    circle_replies = models.IntegerField(default=0)
    reposts = models.IntegerField(default=0)
    quotes = models.IntegerField(default=0, db_default=0)

    def __str__(self) -> str:
        return f"change of {self.item_id}"


class ItemDocument(models.Model):
    """An item's words for search."""

    item = models.OneToOneField(
        Item, on_delete=models.DO_NOTHING, primary_key=True, related_name="+", db_constraint=False
    )
    document = SearchVectorField()

    class Meta:
        indexes = [
            # New words wait in a list of this many kB, which every search reads. So publishing costs 0.05 ms more than
            # without the index, and imports a sixth of writing word by word.
            GinIndex(fields=["document"], gin_pending_list_limit=512, name="item_words"),
        ]

    def __str__(self) -> str:
        return f"words of {self.item_id}"


class ItemTag(models.Model):
    """A hashtag of an item, in canonical form."""

    pk = models.CompositePrimaryKey("tag", "item_id")
    tag = models.CharField(max_length=hashtags.LENGTH)
    item = models.ForeignKey(Item, on_delete=models.DO_NOTHING, related_name="tags", db_constraint=False)
    is_public_post = models.BooleanField(
        db_default=False, editable=False, help_text="Whether the item is a public post; kept by triggers."
    )

    class Meta:
        indexes = [
            # A followed hashtag's newest public posts are an index-only scan.
            models.Index(fields=["tag", "-item"], condition=Q(is_public_post=True), name="item_tag_posts"),
        ]

    def __str__(self) -> str:
        return f"#{self.tag} in {self.item_id}"


class ItemVersion(models.Model):
    """An item's title and content before an edit."""

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
    """A client's key for one call of `publish`."""

    sender = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of what was to be published.")
    item = models.ForeignKey(Item, on_delete=models.CASCADE, related_name="+", db_index=False)
    created_at = models.DateTimeField(db_default=Now(), db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["sender", "key"], name="idempotency_key")]

    def __str__(self) -> str:
        return f"{self.key} of {self.sender_id}"


class Failure(models.TextChoices):
    """Why a scheduled post was not published."""

    INACTIVE = "inactive", _("Your account was suspended or deactivated then.")
    REPLY_GONE = "reply_gone", _("The post it replies to is gone, or you can't see it anymore.")
    QUOTE_GONE = "quote_gone", _("The post it quotes is gone, or its author doesn't allow you to quote it.")
    REPLY_CLOSED = "reply_closed", _("The author doesn't allow you to reply to it.")
    REFUSED = "refused", _("Its text or pictures are no longer allowed.")
    STRANGERS = "strangers", _("You messaged many new people.")
    VIDEO = "video", _("Its video couldn't be converted.")
    ERROR = "error", _("Something went wrong on our side.")


class ScheduledPost(models.Model):
    """A post that waits for its time, its video, or both."""

    sender = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    post = models.JSONField(help_text="The arguments of items.actions.publish, with ids of items.")
    publish_at = models.DateTimeField(null=True, help_text="Null: as soon as its video is ready.")
    awaits = models.BigIntegerField(null=True, help_text="The medium that it waits for (media.processing).")
    key = models.CharField(max_length=255, help_text="The client's idempotency key, or a random one.")
    failure = models.CharField(max_length=16, choices=Failure.choices, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["sender", "key"], name="scheduled_once")]
        indexes = [
            models.Index(fields=["publish_at"], condition=Q(failure=""), name="scheduled_due"),
            models.Index(fields=["awaits"], condition=Q(awaits__isnull=False), name="scheduled_awaits"),
        ]

    def __str__(self) -> str:
        return f"{self.sender_id} at {self.publish_at}"


class FilterAction(models.TextChoices):
    """What a filter does: fold the item, blur its pictures, or leave it out."""

    WARN = "warn", _("Hide behind a warning")
    BLUR = "blur", _("Blur pictures and videos")
    HIDE = "hide", _("Hide completely")


class Context(models.TextChoices):
    """Where a filter applies, in the words of Mastodon's API."""

    HOME = "home", _("Home and lists")
    NOTIFICATIONS = "notifications", _("Notifications")
    PUBLIC = "public", _("Discover, search and hashtags")
    THREAD = "thread", _("Threads")
    ACCOUNT = "account", _("Profiles")


class Filter(models.Model):
    """A phrase that its owner wants to hide or be warned of. A filter with several has a row for each; `group` is the
    first's id.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    phrase = models.CharField(max_length=PHRASE_LENGTH)
    whole_word = models.BooleanField()
    group = models.BigIntegerField(null=True, help_text="The filter's id, where it is not the row's.")
    title = models.CharField(max_length=100, default="", db_default="", help_text="Empty: the first phrase.")
    contexts = ArrayField(
        models.CharField(max_length=16, choices=Context.choices), default=list, db_default=[], help_text="Empty: all."
    )
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
    """A post that its sender shows first on their profile."""

    item = models.OneToOneField(Item, on_delete=models.CASCADE, related_name="+")
    sender = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    """The item's sender."""
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["sender", "-id"], name="pin_profile")]

    def __str__(self) -> str:
        return f"{self.sender_id}: {self.item_id}"
