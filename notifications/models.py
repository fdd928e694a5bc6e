"""The tables of notifications. Reading decides what is shown, so undone acts disappear at once, and come back when
redone.
"""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from items.models import Item, ItemId
from storage.claims import ClaimedRow


class Kind(models.TextChoices):
    """The kinds of notifications."""

    LIKE = "like"
    REPLY = "reply"
    REPOST = "repost"
    FOLLOW = "follow"
    FOLLOW_REQUEST = "follow_request"
    FOLLOW_ACCEPTED = "follow_accepted"
    MENTION = "mention"
    QUOTE = "quote"
    POLL = "poll"
    LIVE = "live"
    POST = "post"
    WARNING = "warning"
    PICTURE = "picture"
    SCHEDULED = "scheduled"
    REPORT = "report"
    CASE = "case"


OF_MODERATORS = (Kind.WARNING, Kind.PICTURE)
WITHOUT_PEOPLE = (*OF_MODERATORS, Kind.SCHEDULED, Kind.REPORT, Kind.CASE)
"""Kinds without people. Their act is the recipient's own, and they cannot be hidden."""
CHOOSABLE = (
    Kind.FOLLOW,
    Kind.FOLLOW_REQUEST,
    Kind.FOLLOW_ACCEPTED,
    Kind.LIKE,
    Kind.REPOST,
    Kind.QUOTE,
    Kind.REPLY,
    Kind.MENTION,
    Kind.POLL,
    Kind.LIVE,
    Kind.POST,
)
"""The kinds that a user may hide, in the order of the settings page."""


PUSHED = (Kind.FOLLOW, Kind.FOLLOW_REQUEST, Kind.QUOTE, Kind.REPLY, Kind.MENTION, Kind.POLL, Kind.LIVE, Kind.POST)
"""The kinds that may be pushed to a device, in the order of the settings."""


GROUPS = {
    "conversations": (Kind.MENTION, Kind.REPLY),
    "likes": (Kind.LIKE,),
    "reposts": (Kind.REPOST,),
    "quotes": (Kind.QUOTE,),
    "follows": (Kind.FOLLOW, Kind.FOLLOW_REQUEST, Kind.FOLLOW_ACCEPTED),
    "posts": (Kind.POST,),
    "live": (Kind.LIVE,),
    "polls": (Kind.POLL,),
}
"""The kinds that the page of notifications can show alone, in its order."""


class Notification(models.Model):
    """An entry of a recipient's list (notifications.feed).

    Follows have a `day` (UTC), live sessions a `session_id`, moderators' messages a `text`, others an `item`. What
    concerns moderators has a `detail` and a `subject_id`.
    `position` (storage.ids) is place and cursor. It grows at most once in `feed.STILL`, so a viral item's entry is no
    hot row. Its acts have ids below `position + STILL`.
    """

    recipient = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notifications", db_index=False
    )
    kind = models.CharField(max_length=16, choices=Kind.choices)
    # No constraint: checking it would lock the row of a popular item.
    item = models.ForeignKey(
        Item, on_delete=models.DO_NOTHING, null=True, related_name="+", db_index=False, db_constraint=False
    )
    day = models.DateField(null=True)
    session_id = models.BigIntegerField(null=True)
    text = models.CharField(max_length=1000, default="", db_default="", help_text="Of moderators.")
    detail = models.CharField(
        max_length=16, default="", db_default="", help_text="What moderators did, or what waits for them."
    )
    subject_id = models.BigIntegerField(null=True, help_text="Of a decision, or of what waits for moderators.")
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
                | Q(kind__in=["warning", "report", "case"], item=None, day=None, session_id=None)
                | Q(kind="scheduled", day=None, session_id=None)
                | (
                    ~Q(
                        kind__in=[
                            *("follow", "follow_request", "follow_accepted", "live"),
                            *("warning", "scheduled", "report", "case"),
                        ]
                    )
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
            # The other kinds of `GROUPS`.
            models.Index(
                fields=["recipient", "kind", "-position"],
                condition=Q(
                    kind__in=[
                        "like",
                        "repost",
                        "quote",
                        "follow",
                        "follow_request",
                        "follow_accepted",
                        "post",
                        "live",
                        "poll",
                    ]
                ),
                name="notification_of_kind",
            ),
            models.Index(fields=["position"], name="notification_age"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} for {self.recipient_id}"


class Act(models.Model):
    """An act in an entry: one per person, however often redone. Apps use its id."""

    id = models.BigIntegerField(primary_key=True, db_default=ItemId(), editable=False)
    # No constraint: it would lock the entry's row on every like of a viral item. No query finds an act without an
    # entry.
    notification = models.ForeignKey(
        Notification, on_delete=models.CASCADE, related_name="acts", db_index=False, db_constraint=False
    )
    # No constraint: it would lock the row of a popular user.
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


class Ringing(ClaimedRow):
    """The bells that a post rings (notifications.bells). `up_to`: the last follower who was notified."""

    # No constraint, as in Notification.
    item = models.OneToOneField(
        Item, on_delete=models.DO_NOTHING, primary_key=True, related_name="+", db_constraint=False
    )
    up_to = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"bells of {self.item_id}"


class ReadMark(models.Model):
    """The newest act that a recipient has seen, and the newest they deleted (0: none)."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="notifications_read"
    )
    up_to = models.BigIntegerField()
    put_away = models.BigIntegerField(default=0, db_default=0)

    def __str__(self) -> str:
        return f"{self.user_id} up to {self.up_to}"


class Silenced(models.Model):
    """The kinds that a user hides."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+")
    kinds = ArrayField(models.CharField(max_length=16))

    def __str__(self) -> str:
        return f"{self.user_id} without {', '.join(self.kinds)}"


class PushWords(models.TextChoices):
    """Whose words a push message holds."""

    ALL = "all", _("The words of posts and private mentions")
    OPEN = "open", _("The words of posts, not of private mentions")
    NONE = "none", _("Only who did what")


class PushPolicy(models.TextChoices):
    """Whose acts are pushed, in the words of Mastodon."""

    ALL = "all"
    FOLLOWED = "followed"
    FOLLOWER = "follower"
    NONE = "none"


class PushSubscription(models.Model):
    """A browser or app that takes push messages, and what waits for it (push/waiting.py).

    PostgreSQL removes it with its session or token (sql/push.sql).
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    session_key = models.CharField(max_length=40, null=True)  # noqa: DJ001 (a reference)
    token_id = models.BigIntegerField(null=True)
    app_token = models.TextField(default="", help_text="The token of an app, sealed: apps know their account by it.")
    endpoint = models.CharField(max_length=2000)
    p256dh = models.CharField(max_length=88)
    auth = models.CharField(max_length=24)
    server_key = models.CharField(max_length=88, help_text="The site's public key that the device was told.")
    is_standard = models.BooleanField(default=True, help_text="Encrypted as RFC 8291 has it, not as its draft 4.")
    kinds = ArrayField(models.CharField(max_length=16))
    policy = models.CharField(max_length=8, choices=PushPolicy.choices, default=PushPolicy.ALL)
    words = models.CharField(max_length=8, choices=PushWords.choices, default=PushWords.OPEN)
    language = models.CharField(max_length=16)
    user_agent = models.CharField(max_length=200, default="")
    created_at = models.DateTimeField(db_default=Now())
    failing_since = models.DateTimeField(null=True)
    retry_at = models.DateTimeField(null=True, help_text="Nothing is sent before.")
    waiting = ArrayField(models.BigIntegerField(), default=list, db_default=[], help_text="Acts that wait, by id.")
    trial_at = models.DateTimeField(null=True, help_text="Since when a test waits.")
    due_at = models.DateTimeField(null=True, help_text="When the sweep takes it up. Null: nothing waits.")
    tries = models.SmallIntegerField(default=0, db_default=0, help_text="Of what waits.")
    pushed = ArrayField(models.BigIntegerField(), default=list, db_default=[], help_text="The newest pushed acts.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["endpoint"], name="push_endpoint"),
            models.UniqueConstraint(fields=["session_key"], name="push_session"),
            models.UniqueConstraint(fields=["token_id"], name="push_token"),
            models.CheckConstraint(
                condition=Q(session_key=None, token_id__isnull=False) | Q(session_key__isnull=False, token_id=None),
                name="push_of_one",
            ),
        ]
        indexes = [models.Index(fields=["due_at"], condition=Q(due_at__isnull=False), name="push_due")]

    def __str__(self) -> str:
        return f"{self.user_id} by {self.session_key or self.token_id}"

    @property
    def is_failing(self) -> bool:
        """Whether the last messages could not be sent."""
        return self.failing_since is not None and self.failing_since <= timezone.now()


class QuietHours(models.Model):
    """The hours in which nothing is pushed to a user."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+")
    begins = models.PositiveSmallIntegerField()
    ends = models.PositiveSmallIntegerField()
    time_zone = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"{self.user_id} from {self.begins} to {self.ends}"
