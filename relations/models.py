from typing import NamedTuple

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from storage.claims import ClaimedRow
from storage.draws import Draw
from web import hashtags


class Follow(models.Model):
    """`follower` follows `followee`. A block hides it without deleting it."""

    follower = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="follows",
        db_index=False,
        verbose_name=_("follower"),
    )
    followee = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="followed_by",
        db_index=False,
        verbose_name=_("follows"),
    )
    reposts = models.BooleanField(
        default=True, db_default=True, help_text="Whether the follower's home shows what the followee reposts."
    )
    created_at = models.DateTimeField(_("since"), db_default=Now())
    # True, else null, which takes no room.
    bell = models.BooleanField(null=True, editable=False, help_text="Whether the follower is notified of each post.")
    uncounted_follower = models.BooleanField(
        null=True, editable=False, help_text="Whether the followee's count leaves out the hidden follower."
    )
    uncounted_followee = models.BooleanField(
        null=True, editable=False, help_text="Whether it is among the follower's `uncounted_followees`."
    )

    class Meta:
        verbose_name = _("follow")
        verbose_name_plural = _("follows")
        constraints = [
            models.UniqueConstraint(fields=["follower", "followee"], name="follow_pair"),
            models.CheckConstraint(condition=~Q(follower=F("followee")), name="follow_not_self"),
        ]
        indexes = [
            models.Index(fields=["followee", "follower"], name="follow_reverse"),
            # Discover reads hundreds of people's newest follows, and their age, without the table.
            models.Index(fields=["follower", "-id"], include=["followee", "created_at"], name="follow_of_follower"),
            models.Index(fields=["followee", "-id"], include=["follower", "created_at"], name="follow_of_followee"),
            # They are few, and every repost in a home asks.
            models.Index(fields=["follower", "followee"], condition=Q(reposts=False), name="follow_without_reposts"),
            models.Index(fields=["followee", "follower"], condition=Q(bell=True), name="follow_bells"),
            models.Index(fields=["follower", "-id"], condition=Q(bell=True), name="follow_own_bells"),
        ]

    def __str__(self) -> str:
        return str(_("follow %(id)s") % {"id": self.pk})


class FollowRequest(models.Model):
    """`follower` asks to follow `followee`."""

    follower = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="asks",
        db_index=False,
        verbose_name=_("follower"),
    )
    followee = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="asked_by",
        db_index=False,
        verbose_name=_("asks to follow"),
    )
    reposts = models.BooleanField(default=True, help_text="As of the follow that it becomes.")
    bell = models.BooleanField(null=True, editable=False, help_text="As of the follow that it becomes.")
    created_at = models.DateTimeField(_("since"), db_default=Now())

    class Meta:
        verbose_name = _("follow request")
        verbose_name_plural = _("follow requests")
        constraints = [
            models.UniqueConstraint(fields=["follower", "followee"], name="follow_request_pair"),
            models.CheckConstraint(condition=~Q(follower=F("followee")), name="follow_request_not_self"),
        ]
        indexes = [models.Index(fields=["followee", "-id"], name="follow_request_page")]

    def __str__(self) -> str:
        return str(_("follow request %(id)s") % {"id": self.pk})


class Block(models.Model):
    """Neither side sees the other."""

    blocker = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="blocks",
        db_index=False,
        verbose_name=_("blocker"),
    )
    blocked = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="blocked_by",
        db_index=False,
        verbose_name=_("blocked user"),
    )
    created_at = models.DateTimeField(_("since"), db_default=Now())

    class Meta:
        verbose_name = _("block")
        verbose_name_plural = _("blocks")
        constraints = [
            models.UniqueConstraint(fields=["blocker", "blocked"], name="block_pair"),
            models.CheckConstraint(condition=~Q(blocker=F("blocked")), name="block_not_self"),
        ]
        indexes = [
            models.Index(fields=["blocked", "blocker"], name="block_reverse"),
            models.Index(fields=["blocker", "-id"], name="block_page"),
        ]

    def __str__(self) -> str:
        return str(_("block %(id)s") % {"id": self.pk})


class Mute(models.Model):
    """The muter's home hides the muted sender, until the row is deleted."""

    muter = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="mutes",
        db_index=False,
        verbose_name=_("muter"),
    )
    muted = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="muted_by",
        db_index=False,
        verbose_name=_("muted user"),
    )
    notifications = models.BooleanField(
        default=True, db_default=True, help_text="Whether notifications of what the muted user does are left out too."
    )
    expires_at = models.DateTimeField(_("until"), null=True)
    created_at = models.DateTimeField(_("since"), db_default=Now())

    class Meta:
        verbose_name = _("mute")
        verbose_name_plural = _("mutes")
        constraints = [
            models.UniqueConstraint(fields=["muter", "muted"], name="mute_pair"),
            models.CheckConstraint(condition=~Q(muter=F("muted")), name="mute_not_self"),
        ]
        indexes = [
            models.Index(fields=["muted", "muter"], name="mute_reverse"),
            models.Index(fields=["muter", "-id"], name="mute_page"),
            models.Index(fields=["expires_at"], condition=Q(expires_at__isnull=False), name="mute_end"),
        ]

    def __str__(self) -> str:
        return str(_("mute %(id)s") % {"id": self.pk})


NOTE_LENGTH = 2_000


class AccountNote(models.Model):
    """What `owner` notes about `subject`. Only the owner ever sees it."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    subject = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    text = models.CharField(max_length=NOTE_LENGTH)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "subject"], name="account_note_pair")]

    def __str__(self) -> str:
        return f"{self.owner_id} about {self.subject_id}"


class FollowerCountChange(models.Model):
    """A follow or unfollow (±1) not yet folded into `User.follower_count`, so that thousands of followers never wait
    for one row.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    change = models.SmallIntegerField()

    def __str__(self) -> str:
        return f"{self.user_id}: {self.change:+}"


class Tag(models.Model):
    """A hashtag that somebody has followed. It keeps its outbox and epoch."""

    name = models.CharField(max_length=hashtags.LENGTH, help_text="In its canonical form, without #.")
    epoch = models.BigIntegerField(db_default=Draw(), editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name"], name="tag_name")]

    def __str__(self) -> str:
        return f"#{self.name}"


class TagFollow(models.Model):
    """`user` gets public posts with `tag` in home."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="followed_tags", db_index=False
    )
    tag = models.ForeignKey(Tag, on_delete=models.PROTECT, related_name="followed_by", db_index=False)
    created_at = models.DateTimeField(_("since"), db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "tag"], name="tag_follow_pair")]
        indexes = [models.Index(fields=["user", "-id"], name="tag_follow_page")]

    def __str__(self) -> str:
        return f"{self.user_id} follows hashtag {self.tag_id}"


TITLE_LENGTH = 100


class List(models.Model):
    """Some of the owner's followees. Home hides members of exclusive lists."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="lists",
        db_index=False,
        verbose_name=_("owner"),
    )
    title = models.CharField(_("title"), max_length=TITLE_LENGTH)
    is_exclusive = models.BooleanField(_("hidden from home"), default=False, db_default=False)
    created_at = models.DateTimeField(_("since"), db_default=Now())

    class Meta:
        verbose_name = _("list")
        verbose_name_plural = _("lists")
        indexes = [models.Index(fields=["owner", "-id"], name="list_page")]

    def __str__(self) -> str:
        return str(_("list %(id)s") % {"id": self.pk})


class ListMember(models.Model):
    """A followee in a list. A foreign key deletes it with the follow."""

    list = models.ForeignKey(List, on_delete=models.CASCADE, related_name="members", db_index=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    """The owner of the list."""
    member = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["list", "member"], name="list_member_pair")]
        indexes = [
            models.Index(fields=["owner", "member"], name="list_member_of_follow"),
            models.Index(fields=["list", "-id"], name="list_member_page"),
        ]

    def __str__(self) -> str:
        return f"{self.list_id}: {self.member_id}"


REFUSALS = {
    "unknown": _("user not found"),
    "elsewhere": _("not on this site"),
    "self": _("that's you"),
    "cap": _("you reached the limit of follows"),
    "requests": _("you have too many open follow requests"),
    "blocked": _("you block them"),
    "unfollowed": _("you don't follow them"),
    "bells": _("you reached the limit of people whose posts notify you"),
    "title": _("the list's name is missing or too long"),
    "lists": _("you reached the limit of lists"),
    "members": _("the list is full"),
    "no_hashtag": _("not a hashtag"),
    "hashtags": _("you reached the limit of followed hashtags"),
}
"""Why a line of an import was refused."""


class RefusedLine(NamedTuple):
    """A row of an import that was refused."""

    name: str
    why: str
    title: str = ""


class CsvImport(ClaimedRow):
    """An uploaded file and its import's progress.

    `lines` (`csv_files.CsvLine`) is emptied at the end. `refused`: lists of name, key of `REFUSALS`, and list title.
    Done lines that are not counted changed nothing.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=16)
    lines = models.JSONField(default=list)
    total = models.IntegerField()
    done = models.IntegerField(default=0)
    changed = models.IntegerField(default=0)
    requested = models.IntegerField(default=0)
    refused = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user"], condition=Q(finished_at=None), name="csv_import_at_a_time")
        ]
        indexes = [
            models.Index(fields=["user", "-id"], name="csv_import_page"),
            models.Index(fields=["id"], condition=Q(finished_at=None), name="csv_import_waiting"),
            models.Index(fields=["finished_at"], condition=Q(finished_at__isnull=False), name="csv_import_finished"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.user_id}: {self.done} of {self.total}"

    @property
    def reasons(self) -> list[RefusedLine]:
        """The refused rows, with translated reasons."""
        return [RefusedLine(name, str(REFUSALS.get(why, why)), *title) for name, why, *title in self.refused]
