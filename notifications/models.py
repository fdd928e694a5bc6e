"""The tables of notifications: one row an entry of a user's list, and one for each user who is named in it.

Both tables are written when something happens and hardly ever again. Whether an entry is shown, who is named in it and
whether it is unread is decided by the reading query (notifications.feed), from the likes, follows, items, blocks and
mutes of that moment; so whatever is undone or hidden is gone on the next request, and back when it is done again.
"""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from items.models import Item, ItemId


class Kind(models.TextChoices):
    """The kinds of notifications: acts of others, and what moderators tell (warnings, pictures that they removed)."""

    LIKE = "like"
    REPLY = "reply"
    REPOST = "repost"
    FOLLOW = "follow"
    FOLLOW_REQUEST = "follow_request"
    FOLLOW_ACCEPTED = "follow_accepted"
    MENTION = "mention"
    QUOTE = "quote"
    LIVE = "live"
    WARNING = "warning"
    PICTURE = "picture"


OF_MODERATORS = (Kind.WARNING, Kind.PICTURE)
"""The kinds that name no people. Their act is the recipient's own, and they cannot be left out."""
CHOOSABLE = (
    Kind.FOLLOW,
    Kind.FOLLOW_REQUEST,
    Kind.FOLLOW_ACCEPTED,
    Kind.LIKE,
    Kind.REPOST,
    Kind.QUOTE,
    Kind.REPLY,
    Kind.MENTION,
    Kind.LIVE,
)
"""The kinds that a user may leave out, in the order of the settings."""


class Notification(models.Model):
    """An entry of a recipient's list: the likes of one item, its reposts, one reply, one quote, one mention, a day's
    followers, its requests to follow or those that were accepted, or the start of a live session that they wanted to be
    told of; or a warning by moderators, or that they removed pictures of a post.

    `item` is what was liked or reposted, the reply, the quote or the post that mentions, or the post whose pictures
    were removed; follows have a `day` (UTC) instead, starts a `session_id`, of a row of a room above, and warnings
    their `text`; removed pictures have the `text` of the last removal.
    `position` is the entry's place in the list and the cursor: an item id's moment (storage.ids), which grows when
    something is added, but at most once in `feed.STILL`, so that the entry of a viral item is no hot row. Every act
    of the entry has an id below `position + STILL`.
    """

    recipient = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notifications", db_index=False
    )
    kind = models.CharField(max_length=16, choices=Kind.choices)
    # Items are never removed, and checking that would lock the row of one that many like.
    item = models.ForeignKey(
        Item, on_delete=models.DO_NOTHING, null=True, related_name="+", db_index=False, db_constraint=False
    )
    day = models.DateField(null=True)
    session_id = models.BigIntegerField(null=True)
    text = models.CharField(max_length=1000, default="", db_default="", help_text="Of moderators.")
    position = models.BigIntegerField(db_default=ItemId())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["recipient", "item", "kind"], condition=Q(day=None), name="notification_of_item"
            ),
            models.UniqueConstraint(
                fields=["recipient", "day"], condition=Q(kind="follow"), name="notification_of_followers"
            ),
            models.UniqueConstraint(
                fields=["recipient", "kind", "day"],
                condition=Q(kind__in=["follow_request", "follow_accepted"]),
                name="notification_of_requests",
            ),
            models.UniqueConstraint(
                fields=["recipient", "session_id"], condition=Q(kind="live"), name="notification_of_session"
            ),
            models.CheckConstraint(
                condition=Q(
                    kind__in=["follow", "follow_request", "follow_accepted"],
                    item=None,
                    day__isnull=False,
                    session_id=None,
                )
                | Q(kind="live", item=None, day=None, session_id__isnull=False)
                | Q(kind="warning", item=None, day=None, session_id=None)
                | (
                    ~Q(kind__in=["follow", "follow_request", "follow_accepted", "live", "warning"])
                    & Q(item__isnull=False, day=None, session_id=None)
                ),
                name="notification_of_one",
            ),
        ]
        indexes = [
            models.Index(fields=["recipient", "-position"], name="notification_list"),
            models.Index(
                fields=["recipient", "-position"],
                condition=Q(kind__in=["mention", "reply"]),
                name="notification_conversation",
            ),
            models.Index(fields=["position"], name="notification_age"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} for {self.recipient_id}"


class Act(models.Model):
    """An act that an entry tells of: one a person, however often they undo and redo it. The id carries the time, and is
    the id of the notification in apps. `recipient` is the entry's (a row that an earlier version writes while this one
    starts has none until `actions.give_recipients`).
    """

    id = models.BigIntegerField(primary_key=True, db_default=ItemId(), editable=False)
    # Not checked by the database: that would lock the entry's row on every like of a viral item. An act whose entry is
    # gone is found by no query.
    notification = models.ForeignKey(
        Notification, on_delete=models.CASCADE, related_name="acts", db_index=False, db_constraint=False
    )
    # Not checked either: that would lock the row of a user whom many like.
    recipient = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["notification", "actor"], name="act_once")]
        indexes = [
            models.Index(fields=["notification", "-id"], name="act_newest"),
            models.Index(fields=["recipient", "-id"], name="act_list"),
        ]

    def __str__(self) -> str:
        return f"{self.actor_id} in {self.notification_id}"


class ReadMark(models.Model):
    """Up to which act a recipient has seen their list, and up to which they have put it away (0: never). Only they
    write it.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="notifications_read"
    )
    up_to = models.BigIntegerField()
    put_away = models.BigIntegerField(default=0, db_default=0)

    def __str__(self) -> str:
        return f"{self.user_id} up to {self.up_to}"


class Silenced(models.Model):
    """The kinds of notifications that a user does not want to be shown; a user without a row wants all."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+")
    kinds = ArrayField(models.CharField(max_length=16))

    def __str__(self) -> str:
        return f"{self.user_id} without {', '.join(self.kinds)}"
