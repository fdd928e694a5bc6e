from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from items.models import Item


class IssuedPage(models.Model):
    """A page that a reader got, kept for a day.

    A repeated `request_id` gets it again, its items are not shown again even if Redis does not know them, and it queues
    impressions (`is_recorded`).
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    request_id = models.CharField(max_length=64, null=True, help_text="The client's name for the call.")  # noqa: DJ001 (unique)
    item_ids = ArrayField(models.BigIntegerField())
    reasons = ArrayField(models.CharField(max_length=200), help_text="Why each of them, as recall put it.")
    has_more = models.BooleanField()
    issued_at = models.DateTimeField()
    is_recorded = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "request_id"], condition=Q(request_id__isnull=False), name="issued_request"
            )
        ]
        indexes = [
            models.Index(fields=["user", "issued_at"], name="issued_to"),
            models.Index(fields=["issued_at"], name="issued_at"),
            models.Index(fields=["id"], condition=Q(is_recorded=False), name="issued_unrecorded"),
        ]

    def __str__(self) -> str:
        return f"{len(self.item_ids)} items to {self.user_id}"


class NotInterested(models.Model):
    """A note that `user` does not want `item`, and less like it."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="not_interested", db_index=False
    )
    item = models.ForeignKey(Item, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "item"], name="not_interested_once")]
        indexes = [models.Index(fields=["user", "-id"], name="not_interested_latest")]

    def __str__(self) -> str:
        return f"{self.user_id} does not want {self.item_id}"


class WordRarity(models.Model):
    """How rare a word is: ln(documents / documents with the word).

    Leaves out words that are too common or in only one document.
    """

    word = models.TextField(help_text="As items.search.words has it.")
    rarity = models.FloatField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["word"], include=["rarity"], name="word_rarity")]

    def __str__(self) -> str:
        return f"{self.word}: {self.rarity:.1f}"


class PopularItem(models.Model):
    """A popular post. `popularity` is above 0.

    A periodic task rewrites the table, so it may contain withdrawn posts.
    """

    item = models.OneToOneField(
        Item, on_delete=models.DO_NOTHING, primary_key=True, related_name="+", db_constraint=False
    )
    popularity = models.FloatField()

    def __str__(self) -> str:
        return f"{self.item_id}: {self.popularity:.1f}"


class SearchIndex(models.Model):
    """How far an index of OpenSearch is written. Writers lock the row."""

    name = models.CharField(max_length=200, primary_key=True)
    position = models.BigIntegerField(help_text="The items from this id on have been loaded into it; 0: all.")
    version = models.BigIntegerField(default=0, help_text="Of the last documents written; it only grows.")

    def __str__(self) -> str:
        return f"{self.name} from {self.position}"


class ItemChange(models.Model):
    """An item to write to OpenSearch: a row of the queue.

    Items may repeat, because a writer may delete the row that it read before another change commits.
    """

    item = models.ForeignKey(Item, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)

    def __str__(self) -> str:
        return f"change of {self.item_id}"
