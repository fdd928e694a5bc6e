from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from items.models import Item
from storage.deliveries import AbstractDelivery


class Delivery(AbstractDelivery):
    """An item whose fan-out is not complete."""

    item = models.OneToOneField(
        Item, on_delete=models.CASCADE, primary_key=True, related_name="delivery", verbose_name=_("post")
    )
    sender = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False, verbose_name=_("author")
    )
    not_before = models.DateTimeField(db_default=Now(), help_text="No fan-out completes before this moment.")

    class Meta:
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")

    def __str__(self) -> str:
        return str(_("delivery of post %(id)s") % {"id": self.item_id})


class DeliveryRange(models.Model):
    """A part of a large fan-out: followers with `low` < id <= `high`, or a shard of active fans."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="ranges")
    revision = models.IntegerField()
    selective = models.BooleanField(default=False, help_text="To followers whose level takes pushes from big-Vs only.")
    shard = models.SmallIntegerField(null=True)
    low = models.BigIntegerField()
    high = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.delivery_id} to followers {self.low}..{self.high}"


class Backfill(models.Model):
    """A demotion. Its worker holds `lease` until `leased_until`."""

    sender = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", verbose_name=_("author")
    )
    followers = models.IntegerField(_("followers"), help_text="Followers when it began.")
    done = models.IntegerField(_("filled"), default=0, help_text="Followers whose inbox has been filled.")
    position = models.BigIntegerField(
        default=0, help_text="The last follower id that was filled; a restart goes on from it."
    )
    started_at = models.DateTimeField(_("started"), db_default=Now())
    sweep_at = models.DateTimeField(db_default=Now())
    lease = models.BigIntegerField(null=True, editable=False)
    leased_until = models.DateTimeField(null=True, editable=False)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    cancelled_at = models.DateTimeField(_("cancelled at"), null=True, blank=True)
    last_error = models.TextField(_("last error"), blank=True)

    class Meta:
        verbose_name = _("big account becoming ordinary")
        verbose_name_plural = _("big accounts becoming ordinary")
        constraints = [
            models.UniqueConstraint(
                fields=["sender"],
                condition=Q(finished_at=None, cancelled_at=None),
                name="backfill_one_running",
            )
        ]

    def __str__(self) -> str:
        facts = {"name": self.sender.username, "done": self.done, "followers": self.followers}
        return str(_("@%(name)s is becoming ordinary: %(done)s of %(followers)s followers done") % facts)


class Import(models.Model):
    """A data set that `manage.py load` has loaded."""

    fingerprint = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the files.")
    users = models.IntegerField()
    follows = models.IntegerField()
    posts = models.IntegerField()
    created_at = models.DateTimeField(db_default=Now())
    settled_at = models.DateTimeField(null=True, help_text="When windows and recommendations had followed the rows.")

    def __str__(self) -> str:
        return f"{self.users} users, {self.follows} follows, {self.posts} posts"


class ImportedUser(models.Model):
    """A user whom an import created, with the user's id in the data set."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+")
    source = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="imported", db_index=False)
    original_id = models.BigIntegerField(help_text="The id in the data set.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source", "original_id"], name="imported_user_original")]

    def __str__(self) -> str:
        return f"{self.user_id} was {self.original_id}"


class ReadingPosition(models.Model):
    """Where in their home a reader was last."""

    reader = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    item_id = models.BigIntegerField(help_text="The entry at the top of the screen.")
    left_id = models.BigIntegerField(
        null=True, blank=True, help_text="Where the visit before this one ended, while it lies below."
    )
    updated_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.reader_id} at {self.item_id}"
