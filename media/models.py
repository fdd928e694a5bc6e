"""Tables of media, and of files to rename or remove."""

from collections.abc import Iterable
from datetime import UTC, datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from media.files import size_name
from storage.claims import ClaimedRow

DESCRIPTION_LENGTH = 1_500
NEVER = datetime(9999, 1, 1, tzinfo=UTC)
"""`withdrawn_at` of a hidden medium, so that no sweep removes it. Deleting its item sets a real time."""


class MediaId(models.Func):
    """A new id from PostgreSQL (storage.ids)."""

    function = "feedsite_next_id"
    arity = 0
    output_field = models.BigIntegerField()


class Use(models.TextChoices):
    """What uses a medium."""

    NONE = "", _("not used")
    ITEM = "item", _("post")
    AVATAR = "avatar", _("avatar")
    BANNER = "banner", _("banner")
    COVER = "cover", _("cover")
    LINK = "link", _("link preview")
    LATER = "later", _("scheduled post")
    AGAIN = "again", _("deleted post, can be posted again")


FACES = (Use.AVATAR, Use.BANNER, Use.COVER, Use.LINK)
"""Uses that everybody sees."""


class MediaKind(models.TextChoices):
    """Kinds of media."""

    IMAGE = "image", _("picture")
    VIDEO = "video", _("video")


class MediaState(models.TextChoices):
    """How far the site is with a medium. Only a video is processed."""

    PROCESSING = "processing", _("being converted")
    READY = "ready", _("ready")
    FAILED = "failed", _("conversion failed")


class MediaFile(models.Model):
    """A picture or video, used at most once. It can be claimed while `use` is empty.

    Files: `<name>.<ext>`, its preview (a video's poster) `<name>.small.<small_ext>` and the preview's sizes
    `<name>.<width>.webp`, a video's `<name>.<captions>`. Those of a withdrawn medium are renamed or gone. `ext` is
    empty while there is no such file: until a video is converted.
    """

    id = models.BigIntegerField("ID", primary_key=True, db_default=MediaId(), editable=False)
    owner_id = models.BigIntegerField(_("owner"))
    use = models.CharField(_("use"), max_length=8, choices=Use.choices, default="", db_default="", blank=True)
    item_id = models.BigIntegerField(_("post"), null=True, blank=True)
    session_id = models.BigIntegerField(
        _("live session"), null=True, blank=True, help_text=_("The live session it's the cover of.")
    )
    position = models.SmallIntegerField(default=0, db_default=0)
    kind = models.CharField(_("kind"), max_length=8, choices=MediaKind.choices)
    state = models.CharField(
        _("state"), max_length=10, choices=MediaState.choices, default=MediaState.READY, db_default=MediaState.READY
    )
    progress = models.SmallIntegerField(default=100, db_default=100, help_text="Percent of the conversion.")
    failure = models.CharField(
        max_length=16,
        default="",
        db_default="",
        blank=True,
        help_text="Why the conversion failed (media.reasons). Of a ready video: why it has no poster.",
    )
    name = models.CharField(max_length=64, unique=True)
    ext = models.CharField(max_length=8)
    small_ext = models.CharField(max_length=8, blank=True)
    captions = models.CharField(
        max_length=8, blank=True, default="", db_default="", help_text="The end of the name of a video's captions."
    )
    width = models.IntegerField(_("width"))
    height = models.IntegerField(_("height"))
    small_width = models.IntegerField(default=0)
    small_height = models.IntegerField(default=0)
    widths = ArrayField(
        models.SmallIntegerField(), default=list, db_default=[], help_text="Widths of its further sizes, ascending."
    )
    is_moving = models.BooleanField(default=False, db_default=False, help_text="Whether it is an animation.")
    lacks_sizes = models.BooleanField(
        default=False, db_default=True, help_text="Whether media.resizing has yet to make its sizes."
    )
    size = models.BigIntegerField(_("bytes"))
    duration = models.FloatField(_("seconds"), null=True, blank=True)
    blurhash = models.CharField(max_length=128, blank=True)
    focus_x = models.FloatField(default=0)
    focus_y = models.FloatField(default=0)
    description = models.CharField(_("description"), max_length=DESCRIPTION_LENGTH, blank=True)
    sha256 = models.CharField("SHA-256", max_length=64, help_text=_("Hash of the uploaded file."))
    phash = models.BigIntegerField(null=True, help_text="The perceptual hash of a picture, or of a video's own poster.")
    key = models.CharField(max_length=255, blank=True, help_text="The client's name for the call, for a day.")
    is_private = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="Whether only the people of a private mention may see it.",
    )
    created_at = models.DateTimeField(_("uploaded"), db_default=Now())
    withdrawn_at = models.DateTimeField(_("withdrawn"), null=True, blank=True)
    hidden_at = models.DateTimeField(
        _("hidden"), null=True, blank=True, help_text=_("Hidden by moderators. Nobody can open its files.")
    )

    class Meta:
        verbose_name = _("picture or video")
        verbose_name_plural = _("pictures and videos")
        constraints = [
            models.UniqueConstraint(fields=["owner_id", "key"], condition=~Q(key=""), name="media_key"),
        ]
        indexes = [
            models.Index(fields=["owner_id", "-id"], name="media_owner"),
            models.Index(fields=["item_id", "position"], condition=Q(item_id__isnull=False), name="media_item"),
            models.Index(fields=["session_id"], condition=Q(session_id__isnull=False), name="media_session"),
            models.Index(fields=["sha256", "-id"], name="media_digest"),
            models.Index(fields=["created_at"], condition=Q(use=""), name="media_unused"),
            models.Index(fields=["created_at"], condition=~Q(key=""), name="media_keyed"),
            models.Index(fields=["withdrawn_at"], condition=Q(withdrawn_at__isnull=False), name="media_withdrawn"),
            models.Index(fields=["-id"], condition=Q(lacks_sizes=True, kind="image"), name="media_unsized"),
            models.Index(
                fields=["-id"],
                condition=Q(kind="video", state="ready", small_ext="", failure=""),
                name="media_posterless",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.id}"

    @property
    def files(self) -> list[str]:
        """Names in the store."""
        names = file_names(self.name, self.ext, self.small_ext, self.widths)
        return [*names, f"{self.name}.{self.captions}"] if self.captions else names


def file_names(name: str, ext: str, small_ext: str, widths: Iterable[int]) -> list[str]:
    """Names of the file, its preview and its sizes in the store."""
    whole = [f"{name}.{ext}"] if ext else []
    small = [f"{name}.small.{small_ext}"] if small_ext else []
    return [*whole, *small, *(size_name(name, width) for width in widths)]


class FileMove(models.Model):
    """Files to rename or remove after the commit (`media.actions.move_files`)."""

    name = models.CharField(max_length=64, db_index=True)
    to = models.CharField(max_length=64, blank=True, db_index=True, help_text="The new name; empty: they go.")
    ext = models.CharField(max_length=8)
    small_ext = models.CharField(max_length=8, blank=True)
    widths = ArrayField(models.SmallIntegerField(), default=list, db_default=[])
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name} → {self.to or 'nothing'}"


class VideoConversion(ClaimedRow):
    """The conversion of an uploaded video (media.processing). A finished one stays for a day, to count its seconds."""

    media_id = models.BigIntegerField(primary_key=True)
    owner_id = models.BigIntegerField()
    original = models.CharField(max_length=64, unique=True, help_text="The name of the uploaded file in the store.")
    seconds = models.FloatField(default=0, help_text="Processor seconds that it took.")

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(fields=["owner_id", "created_at"], name="conversion_owner"),
            models.Index(fields=["media_id"], condition=Q(finished_at=None), name="conversion_waiting"),
            models.Index(fields=["finished_at"], condition=Q(finished_at__isnull=False), name="conversion_finished"),
        ]

    def __str__(self) -> str:
        return f"conversion of {self.media_id}"


class OwnerRename(ClaimedRow):
    """The renaming of a hidden account's files (media.renaming). `last_id`: the last medium that has a new name."""

    owner_id = models.BigIntegerField(primary_key=True)
    last_id = models.BigIntegerField(default=0)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"files of {self.owner_id}"
