"""Follows, blocks and mutes: unique pairs, indexed in both directions."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class Follow(models.Model):
    """`follower` reads what `followee` publishes. A block hides it without removing it, so that unblocking brings
    all back.
    """

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
    created_at = models.DateTimeField(_("since"), db_default=Now())

    class Meta:
        verbose_name = _("follow")
        verbose_name_plural = _("follows")
        constraints = [
            models.UniqueConstraint(fields=["follower", "followee"], name="follow_pair"),
            models.CheckConstraint(condition=~Q(follower=F("followee")), name="follow_not_self"),
        ]
        indexes = [
            models.Index(fields=["followee", "follower"], name="follow_reverse"),
            models.Index(fields=["follower", "-id"], name="follow_following_page"),
            models.Index(fields=["followee", "-id"], name="follow_followers_page"),
        ]

    def __str__(self) -> str:
        return str(_("follow %(id)s") % {"id": self.pk})


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
        indexes = [models.Index(fields=["blocked", "blocker"], name="block_reverse")]

    def __str__(self) -> str:
        return str(_("block %(id)s") % {"id": self.pk})


class Mute(models.Model):
    """A mute: the muter's home leaves the muted sender out; no other user notices."""

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
    created_at = models.DateTimeField(_("since"), db_default=Now())

    class Meta:
        verbose_name = _("mute")
        verbose_name_plural = _("mutes")
        constraints = [
            models.UniqueConstraint(fields=["muter", "muted"], name="mute_pair"),
            models.CheckConstraint(condition=~Q(muter=F("muted")), name="mute_not_self"),
        ]
        indexes = [models.Index(fields=["muted", "muter"], name="mute_reverse")]

    def __str__(self) -> str:
        return str(_("mute %(id)s") % {"id": self.pk})


class FollowerCountChange(models.Model):
    """A follow (+1) or unfollow (-1) not yet folded into `User.follower_count`.

    Insert-only between folds: thousands of followers a minute never wait for one row.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    change = models.SmallIntegerField()

    def __str__(self) -> str:
        return f"{self.user_id}: {self.change:+}"


class List(models.Model):
    """A timeline of some of the owner's followees. What members of an exclusive one say leaves the owner's home."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="lists",
        db_index=False,
        verbose_name=_("owner"),
    )
    title = models.CharField(_("title"), max_length=100)
    is_exclusive = models.BooleanField(_("out of home"), default=False, db_default=False)
    created_at = models.DateTimeField(_("since"), db_default=Now())

    class Meta:
        verbose_name = _("list")
        verbose_name_plural = _("lists")
        indexes = [models.Index(fields=["owner", "-id"], name="list_page")]

    def __str__(self) -> str:
        return str(_("list %(id)s") % {"id": self.pk})


class ListMember(models.Model):
    """A followee in one of the owner's lists. PostgreSQL holds that the owner follows them: a foreign key to the follow
    (relations/migrations/0003) takes the member out in the transaction that takes the follow, whoever does that.
    """

    list = models.ForeignKey(List, on_delete=models.CASCADE, related_name="members", db_index=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    """The list's."""
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
