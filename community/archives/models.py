"""Imports of archives, and the posts that they brought."""

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import msgspec
from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from relations.csv_files import FAULTS
from relations.models import REFUSALS
from storage.claims import ClaimedRow

ARCHIVE = "archive"
"""File name of the upload."""
REASONS = {
    "before": _("imported before"),
    "boost": _("a boost of someone's post"),
    "direct": _("a private mention"),
    "reply": _("a reply to someone else"),
    "parent": _("a reply to a post that we didn't import"),
    "rules": _("it has words, links or pictures that need a review on this site"),
    "text": _("too long, or without text and pictures that this site accepts"),
    "time": _("its date is missing, before 2000 or in the future"),
    "size": _("too large for a post"),
    "kind": _("not a post"),
    "unreadable": _("it can't be read"),
    "many": _("over the limit of posts per archive"),
}
"""Why an item was left out."""
MEDIA_REASONS = {
    "missing": _("its file is missing from the archive, or too large"),
    "refused": _("this site doesn't accept the file"),
    "more": _("a post can have up to four pictures, or one video"),
}
"""Why a picture or video was left out."""
PART_REASONS = {
    "updated": _("post imported, but the time of its last edit can't be read"),
    "id": _("post imported, but it has no address of its own"),
    "quote": _("post imported, but without its quote: fewer people can see the quoted post"),
}
"""What an imported post lost."""
OTHER_REASONS = {
    "profile": _("a part of the profile that this site doesn't accept"),
}
LIST_REASONS = REFUSALS | {
    "already": _("already done"),
    "foreign": _("a post on another site"),
    "hidden": _("a post that is gone, or that you can't see"),
    "unpinnable": _("only public posts that aren't replies can be pinned"),
    "pins": _("you reached the limit of pinned posts"),
    "unreadable": REASONS["unreadable"],
    "many": _("over the limit per archive"),
}
"""Why an entry of a list was left out."""
LIST_FAILURES = FAULTS | {
    "unread": _("This file can't be read. Try another one."),
    "long": _("The file is too large for this site."),
}
"""Why a whole list was left out."""
FAILURES = {
    "format": _("This isn't an archive. Choose a zip or tar.gz file."),
    "outbox": _("Its list of posts (outbox.json) is missing or incomplete. Download the archive again."),
    "damaged": _("The archive is damaged or incomplete. Download it again."),
    "large": _("It's larger than this site can unpack."),
    "deep": _("Its list of posts (outbox.json) is too complex."),
    "gone": _("The uploaded file is gone. Upload it again."),
    "failed": _("The import failed several times. Upload the archive again later."),
}
"""Why an import ended early."""
NOTES = 500
"""Maximum addresses of left-out items kept per import."""


class ImportState(models.TextChoices):
    """The state of an import."""

    RUNNING = "running", _("running")
    DONE = "done", _("done")
    CANCELLED = "cancelled", _("stopped by you")
    FAILED = "failed", _("ended early")


class ListKind(StrEnum):
    """The lists, in import order: blocks before the follows they forbid, follows before the lists that need them."""

    BLOCKS = "blocks"
    MUTES = "mutes"
    FOLLOWS = "follows"
    LISTS = "lists"
    PINS = "pins"
    LIKES = "likes"
    BOOKMARKS = "bookmarks"


LISTED = {
    ListKind.BLOCKS: _("People you block"),
    ListKind.MUTES: _("People you mute"),
    ListKind.FOLLOWS: _("People you follow"),
    ListKind.LISTS: _("People in lists"),
    ListKind.PINS: _("Pinned posts"),
    ListKind.LIKES: _("Likes"),
    ListKind.BOOKMARKS: _("Bookmarks"),
}


class ListProgress(msgspec.Struct, omit_defaults=True):
    """The progress of a list. `left_out`: counts by keys of `LIST_REASONS`. `failure`: a key of `LIST_FAILURES`."""

    total: int
    done: int = 0
    brought: int = 0
    requested: int = 0
    left_out: dict[str, int] = {}
    failure: str = ""

    @property
    def failure_words(self) -> str:
        """The failure in the reader's language."""
        return str(LIST_FAILURES.get(self.failure, ""))

    @property
    def counts(self) -> "list[Count]":
        """How many entries were left out, by reason."""
        return [Count(str(LIST_REASONS.get(why, why)), times) for why, times in self.left_out.items()]


class NamedProgress(NamedTuple):
    """Progress with the list's translated name."""

    words: str
    progress: ListProgress


class Count(NamedTuple):
    """Entries left out for one reason."""

    why: str
    times: int


class LeftOut(NamedTuple):
    """A left-out item: its original address, and why."""

    address: str
    why: str


class ArchiveImport(ClaimedRow):
    """An uploaded archive, and the progress of its import.

    `folder` holds its files until it ends. `left_out` counts by reason. `notes` has the first `NOTES` pairs of address
    and reason. `lists`: `ListProgress` of each list.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    folder = models.CharField(max_length=64)
    is_for_self = models.BooleanField(default=False, help_text="Whether only the author sees the posts.")
    takes_profile = models.BooleanField(default=False, help_text="Whether empty parts of the profile are filled.")
    state = models.CharField(max_length=16, choices=ImportState.choices, default=ImportState.RUNNING)
    failure = models.CharField(max_length=16, blank=True)
    total = models.IntegerField(null=True, help_text="Items of the archive; empty until it is unpacked.")
    done = models.IntegerField(default=0)
    brought = models.IntegerField(default=0)
    media = models.IntegerField(default=0)
    left_out = models.JSONField(default=dict)
    notes = models.JSONField(default=list)
    lists = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user"], condition=Q(finished_at=None), name="archive_import_at_a_time")
        ]
        indexes = [
            models.Index(fields=["user", "-id"], name="archive_import_page"),
            models.Index(fields=["id"], condition=Q(finished_at=None), name="archive_import_waiting"),
            models.Index(
                fields=["finished_at"], condition=Q(finished_at__isnull=False), name="archive_import_finished"
            ),
        ]

    def __str__(self) -> str:
        return f"archive of {self.user_id}: {self.done} of {self.total}"

    @property
    def failure_words(self) -> str:
        """The failure in the reader's language."""
        return str(FAILURES.get(self.failure, ""))

    @property
    def counts(self) -> list[Count]:
        """How much was left out, by reason."""
        known = REASONS | MEDIA_REASONS | PART_REASONS | OTHER_REASONS
        return [Count(str(known[why]), self.left_out[why]) for why in known if self.left_out.get(why)]

    def progress(self) -> dict[ListKind, ListProgress]:
        """The progress of each list, in import order."""
        lists = self.lists or {}
        return {kind: msgspec.convert(lists[kind], ListProgress) for kind in ListKind if kind in lists}

    @property
    def listed(self) -> list[NamedProgress]:
        """The lists in the reader's language."""
        return [NamedProgress(str(LISTED[kind]), progress) for kind, progress in self.progress().items()]

    @property
    def entries(self) -> int:
        """Entries of the archive and its lists."""
        return (self.total or 0) + sum(one.total for one in self.progress().values())

    @property
    def entries_read(self) -> int:
        """Entries read so far."""
        return self.done + sum(one.done for one in self.progress().values())

    @property
    def has_left_out(self) -> bool:
        """Whether anything was left out."""
        return bool(self.left_out) or any(one.left_out for one in self.progress().values())

    @property
    def noted(self) -> list[LeftOut]:
        """The first items left out."""
        known = LIST_REASONS | REASONS | MEDIA_REASONS | PART_REASONS
        return [LeftOut(address, str(known.get(why, why))) for address, why in self.notes]


class BroughtItem(models.Model):
    """An imported post, never imported again."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    origin = models.CharField(max_length=64, help_text="SHA-256 of the post's address.")
    # Items are never removed.
    item = models.ForeignKey("items.Item", on_delete=models.DO_NOTHING, related_name="+", db_index=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "origin"], name="brought_once")]

    def __str__(self) -> str:
        return f"{self.user_id} brought {self.item_id}"


def folder_of(name: str) -> Path:
    """The folder of an import's files."""
    folder: Path = settings.IMPORTS_DIR / name
    return folder
