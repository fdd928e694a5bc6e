from datetime import datetime, timedelta
from typing import Any, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from items.links import check_link
from items.models import ItemId
from storage.deliveries import AbstractDelivery
from storage.ids import moment

TITLE_LENGTH = 200
SHORT = timedelta(minutes=1)
"""A shorter session becomes a replay only if its host wants one."""


class State(models.TextChoices):
    """States of a session. All but upcoming and live are final."""

    UPCOMING = "upcoming", _("upcoming")
    LIVE = "live", _("live")
    REPLAY = "replay", _("replay")
    CANCELLED = "cancelled", _("cancelled")
    MISSED = "missed", pgettext_lazy("live session", "missed")


class Review(models.TextChoices):
    """Moderators' decisions on hidden sessions."""

    IN_REVIEW = "in_review", _("in review")
    REJECTED = "rejected", _("rejected")


class LiveSession(models.Model):
    """A session, changed only through live.actions.

    `position` (storage.ids) sorts replays by end. With `hidden_at` only the host sees it; an empty `review` then means
    that host or admin hid it. `pulled` is set at the end for good: a big-V's replay is pulled, never pushed.
    """

    id = models.BigIntegerField("ID", primary_key=True, db_default=ItemId(), editable=False)
    host = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="live_sessions",
        db_index=False,
        verbose_name=_("host"),
    )
    title = models.CharField(_("title"), max_length=TITLE_LENGTH)
    url = models.CharField(
        _("address"),
        max_length=2000,
        blank=True,
        validators=[check_link],
        help_text=_("Where people watch it. Starts with https."),
    )
    cover_url = models.CharField(
        _("cover"),
        max_length=2000,
        blank=True,
        validators=[check_link],
        help_text=_("Address of a picture. Starts with https."),
    )
    cover = models.JSONField(
        _("cover picture"), null=True, blank=True, editable=False, help_text="The facts of a picture (media.objects)."
    )
    state = models.CharField(_("state"), max_length=16, choices=State.choices, default=State.UPCOMING)
    version = models.PositiveIntegerField(default=1)
    starts_at = models.DateTimeField(_("planned for"))
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    position = models.BigIntegerField(null=True, blank=True, unique=True, editable=False)
    automatic = models.BooleanField(_("automatic"), default=False)
    minutes = models.PositiveSmallIntegerField(
        _("minutes"), default=60, help_text=_("How long an automatic session lasts.")
    )
    repeat_minutes = models.PositiveIntegerField(null=True, blank=True, editable=False)
    reminders_due = models.BooleanField(default=False, db_default=False, editable=False)
    hidden_at = models.DateTimeField(_("hidden since"), null=True, blank=True)
    review = models.CharField(
        _("moderation"), max_length=16, choices=Review.choices, blank=True, default="", db_default=""
    )
    worded_at = models.DateTimeField(_("words changed"), db_default=Now(), editable=False)
    pulled = models.BooleanField(default=False, db_default=False, editable=False)
    modified_at = models.DateTimeField(_("last changed"), db_default=Now())

    class Meta:
        verbose_name = _("live session")
        verbose_name_plural = _("live sessions")
        constraints = [
            models.CheckConstraint(
                condition=(Q(state="replay") & Q(position__isnull=False) & Q(ended_at__isnull=False))
                | (~Q(state="replay") & Q(position=None)),
                name="live_position_of_replays",
            ),
            models.CheckConstraint(condition=Q(review="") | Q(hidden_at__isnull=False), name="live_reviewed_hidden"),
            models.CheckConstraint(
                condition=~Q(state__in=["live", "replay"]) | Q(started_at__isnull=False), name="live_started"
            ),
        ]
        indexes = [
            models.Index(fields=["host", "-id"], name="live_of_host"),
            models.Index(fields=["host"], condition=Q(state__in=["upcoming", "live"]), name="live_lineup"),
            models.Index(fields=["host", "-position"], condition=Q(state="replay"), name="live_replays"),
            # One index for each kind of session that pages and windows pull (live/pull.py).
            models.Index(
                fields=["host", "-position"], condition=Q(state="replay", hidden_at=None), name="live_shown_replays"
            ),
            models.Index(
                fields=["host", "-position"], condition=Q(state="replay", pulled=False), name="live_pushed_replays"
            ),
            models.Index(
                fields=["host", "-position"],
                condition=Q(state="replay", pulled=True, hidden_at=None),
                name="live_pulled_replays_shown",
            ),
            models.Index(fields=["starts_at"], condition=Q(state="upcoming"), name="live_due"),
            models.Index(fields=["started_at"], condition=Q(state="live"), name="live_started_at"),
            models.Index(fields=["id"], condition=Q(reminders_due=True), name="live_reminders_due"),
        ]

    def __str__(self) -> str:
        return f"{self.title} ({self.get_state_display()})"

    @property
    def cover_id(self) -> int | None:
        """The id of the uploaded cover."""
        return int(self.cover["id"]) if self.cover else None

    @property
    def created_at(self) -> datetime:
        """The creation time, from the id."""
        return moment(self.pk)


class HostQuerySet(models.QuerySet[Any]):
    """Filters for hosts."""

    def behind(self) -> Self:
        """Hosts with a lineup that Redis lacks."""
        return self.exclude(applied=models.F("version"))


class Host(models.Model):
    """A user with sessions. The row is locked while one changes.

    `version`, an id from the lineup's last change, never repeats. `applied` is the version last written to Redis.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="live_host"
    )
    version = models.BigIntegerField(db_default=ItemId())
    applied = models.BigIntegerField(default=0)
    scheduled = models.PositiveIntegerField(default=0, help_text="Sessions that are live or upcoming, and not hidden.")
    has_pulled = models.BooleanField(default=False, db_default=False)

    objects = HostQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["user"], condition=Q(scheduled__gt=0), name="live_host_scheduled"),
            models.Index(fields=["version"], condition=~Q(applied=models.F("version")), name="live_host_behind"),
            models.Index(fields=["user"], condition=Q(has_pulled=True), name="live_host_pulled"),
        ]

    def __str__(self) -> str:
        return f"host {self.user_id}"


class Reminder(models.Model):
    """A wish to be told of a start. Deleted in the transaction that tells it."""

    session = models.ForeignKey(LiveSession, on_delete=models.CASCADE, related_name="reminders", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "user"], name="live_reminder_once")]

    def __str__(self) -> str:
        return f"{self.user_id} waits for {self.session_id}"


class ReplayDelivery(AbstractDelivery):
    """A replay not yet in every follower's inbox."""

    session = models.OneToOneField(
        LiveSession, on_delete=models.CASCADE, primary_key=True, related_name="delivery", verbose_name=_("replay")
    )
    host = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False, verbose_name=_("host")
    )
    position = models.BigIntegerField(unique=True)

    class Meta:
        verbose_name = _("replay delivery")
        verbose_name_plural = _("replay deliveries")

    def __str__(self) -> str:
        return str(_("delivery of replay %(id)s") % {"id": self.session_id})


class KeptSnapshot(models.Model):
    """A snapshot (live/snapshot.py) that Redis did not take."""

    reader = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    digest = models.CharField(max_length=24, help_text="Of what was frozen.")
    lives = models.IntegerField(help_text="How many of the entries were live; they come first.")
    entries = ArrayField(models.BigIntegerField(), help_text="Ids in the frozen order; minus the id where upcoming.")
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "live_walksnapshot"  # the previous version has another table of the model's name
        constraints = [models.UniqueConstraint(fields=["reader", "digest"], name="live_kept_once")]

    def __str__(self) -> str:
        return f"snapshot of {len(self.entries)} sessions"
