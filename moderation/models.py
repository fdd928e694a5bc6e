"""Records of moderation: words, senders, cases, reports, and the log of decisions, which only grows."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from accounts.about.models import Rule
from items.matching import fold
from items.models import Item


class WordRule(models.Model):
    """A word or phrase that a moderator wants to see before it is published.

    Compared without regard to case, width and invisible characters (items.matching). Every change of this table, by
    whomever, gives `WordListVersion` a new value in the same transaction: a trigger of the migration does.
    """

    text = models.CharField(_("word or phrase"), max_length=100, unique=True)
    whole = models.BooleanField(
        _("whole words only"),
        default=True,
        help_text=_(
            "“cat” is not found in “category”. Scripts without spaces, such as Chinese, are searched anywhere."
        ),
    )
    is_enabled = models.BooleanField(_("enabled"), default=True)
    note = models.CharField(_("note"), max_length=200, blank=True)
    created_at = models.DateTimeField(_("since"), db_default=Now(), editable=False)

    class Meta:
        verbose_name = _("word rule")
        verbose_name_plural = _("word rules")

    def __str__(self) -> str:
        return self.text

    def comparable(self) -> str:
        """The text as it is compared. Raises ValidationError for what would be found nowhere."""
        folded = fold(self.text)
        if not folded:
            raise ValidationError({"text": _("Nothing of this is left to compare.")})
        return folded

    def clean(self) -> None:
        """Raises ValidationError for what would be found nowhere, and for what another rule finds already."""
        folded = self.comparable()
        others = WordRule.objects.exclude(pk=self.pk).values_list("text", flat=True)
        if same := next((text for text in others if fold(text) == folded), None):
            raise ValidationError({"text": _("The rule “%(text)s” finds the same.") % {"text": same}})


class WordListVersion(models.Model):
    """One row, with a random value that is new after each change of the rules: what was compiled under it is current.

    Random and not counted, so that no restored or emptied database repeats one.
    """

    id = models.SmallIntegerField(primary_key=True)
    version = models.UUIDField()

    def __str__(self) -> str:
        return str(self.version)


class SenderKind(models.TextChoices):
    """The kinds of a sender's rule."""

    BLACK = "black", _("black list: everything is held for review")
    WHITE = "white", _("white list: nothing is held")
    BAN = "ban", _("banned: signed out, and gone from the site")


class SenderRule(models.Model):
    """A sender whose items are all looked at before they are published, or none of them; or a sender who is banned.

    A banned account is inactive, and comes back in the transaction that takes its ban away: whatever removes or changes
    the rule (moderation.senders) lifts the ban.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", verbose_name=_("user")
    )
    kind = models.CharField(_("rule"), max_length=8, choices=SenderKind.choices)
    reason = models.CharField(_("why"), max_length=200, blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        db_index=False,
        verbose_name=_("by"),
    )
    created_at = models.DateTimeField(_("since"), db_default=Now(), editable=False)

    class Meta:
        verbose_name = _("sender rule")
        verbose_name_plural = _("sender rules")

    def __str__(self) -> str:
        return f"{self.user}: {self.get_kind_display()}"


class Source(models.TextChoices):
    """The act that opened a case."""

    RULE = "rule", _("a rule")
    REPORT = "report", _("a report")
    MODERATOR = "hand", _("a moderator")


class State(models.TextChoices):
    """The states of a case."""

    OPEN = "open", _("open")
    APPROVED = "approved", _("approved")
    REJECTED = "rejected", _("rejected")


ONE_SUBJECT = Q(item__isnull=False, session_id=None) | Q(item=None, session_id__isnull=False)


class Case(models.Model):
    """An item or a live session that a moderator has to look at. At most one is open for each.

    Sessions are of a room that this one does not know (accounts.review): `session_id` is the session's. `host` is the
    author of the words, also of an item, so that the cases of a user are found by an index. Open cases of deleted items
    and of inactive senders are not in the queue: these items are hidden anyway. They are in it again as soon as that
    changes.
    """

    item = models.ForeignKey(Item, on_delete=models.PROTECT, null=True, related_name="+", db_index=False)
    session_id = models.BigIntegerField(null=True)
    host = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    source = models.CharField(_("source"), max_length=8, choices=Source.choices)
    reasons = models.JSONField(default=list, help_text="Why: a list of strings `code: words` (sentences.explained).")
    words = models.ManyToManyField(WordRule, related_name="cases", editable=False)
    state = models.CharField(_("state"), max_length=8, choices=State.choices, default=State.OPEN)
    opened_at = models.DateTimeField(db_default=Now())
    decided_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        db_index=False,
        verbose_name=_("decided by"),
    )
    note = models.CharField(max_length=500, blank=True)

    class Meta:
        verbose_name = _("case")
        verbose_name_plural = _("cases")
        default_permissions = ("view",)
        permissions = [("decide_case", gettext_noop("Can decide cases: approve, reject, ban and unban"))]
        constraints = [
            models.UniqueConstraint(fields=["item"], condition=Q(state="open"), name="case_open_once"),
            models.CheckConstraint(
                condition=Q(state="open", decided_at=None) | (~Q(state="open") & Q(decided_at__isnull=False)),
                name="case_decided_when_closed",
            ),
            models.CheckConstraint(condition=ONE_SUBJECT, name="case_of_one"),
            models.UniqueConstraint(fields=["session_id"], condition=Q(state="open"), name="case_session_open_once"),
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(state="open"), name="case_queue"),
            models.Index(fields=["item", "-id"], name="case_item"),
            models.Index(fields=["host", "-id"], name="case_author"),
            models.Index(fields=["session_id", "-id"], condition=Q(session_id__isnull=False), name="case_session"),
        ]

    def __str__(self) -> str:
        return str(_("Case %(id)s") % {"id": self.pk})

    @property
    def sender(self) -> Any:
        """The author of the words, a User: the item's sender or the session's host."""
        return self.item.sender if self.item else self.host


REPORT_LENGTH = 500


class ReportReason(models.TextChoices):
    """The reasons that readers choose from."""

    SPAM = "spam", _("Spam or advertising")
    ABUSE = "abuse", _("Harassment or hate")
    VIOLENCE = "violence", _("Violence or threats")
    SEXUAL = "sexual", _("Sexual content")
    ILLEGAL = "illegal", _("Against the law")
    FALSE = "false", _("False or misleading")
    OTHER = "other", _("Something else")


class Report(models.Model):
    """A reader's report of an item or a live session; each reader reports it once."""

    item = models.ForeignKey(
        Item, on_delete=models.PROTECT, null=True, related_name="+", db_index=False, verbose_name=_("item")
    )
    session_id = models.BigIntegerField(_("live session"), null=True)
    reporter = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", verbose_name=_("reported by")
    )
    reason = models.CharField(_("why"), max_length=16, choices=ReportReason.choices)
    text = models.CharField(_("words"), max_length=REPORT_LENGTH, blank=True)
    # Rules are withdrawn and never deleted, so the database need not look.
    rule = models.ForeignKey(
        Rule,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        db_constraint=False,
        verbose_name=_("rule"),
    )
    case = models.ForeignKey(Case, on_delete=models.PROTECT, related_name="reports", verbose_name=_("case"))
    created_at = models.DateTimeField(_("at"), db_default=Now())

    class Meta:
        verbose_name = _("report")
        verbose_name_plural = _("reports")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["item", "reporter"], name="report_once"),
            models.UniqueConstraint(
                fields=["session_id", "reporter"],
                condition=Q(session_id__isnull=False),
                name="report_session_once",
            ),
            models.CheckConstraint(condition=ONE_SUBJECT, name="report_of_one"),
        ]

    def __str__(self) -> str:
        return str(_("report %(id)s") % {"id": self.pk})


class PictureAction(models.TextChoices):
    """The acts of a rule on a picture that it finds."""

    HOLD = "hold", _("hold the post for review")
    REJECT = "reject", _("refuse the file")


DISTANCE = 6
"""Bits of a hash's 64 that may differ in pictures that count as alike."""


class PictureRule(models.Model):
    """A picture or video that is held or refused wherever it is sent again (moderation.hashes)."""

    sha256 = models.CharField("SHA-256", max_length=64, unique=True, editable=False)
    phash = models.BigIntegerField(null=True, editable=False, help_text="Empty: only the same file is found.")
    action = models.CharField(_("what is done"), max_length=8, choices=PictureAction.choices)
    distance = models.SmallIntegerField(
        _("difference"),
        default=DISTANCE,
        validators=[MinValueValidator(0), MaxValueValidator(10)],
        help_text=_("From 0 (looks the same) to 10 of 64; 6 finds it resized, compressed anew, recoloured or stamped."),
    )
    note = models.CharField(_("note"), max_length=200)
    is_enabled = models.BooleanField(_("enabled"), default=True)
    medium_id = models.BigIntegerField(null=True, editable=False, help_text="Where it was blocked from.")
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        db_index=False,
        verbose_name=_("by"),
    )
    created_at = models.DateTimeField(_("since"), db_default=Now(), editable=False)
    attempts = models.IntegerField(_("attempts"), default=0, db_default=0, editable=False)
    last_attempt_at = models.DateTimeField(_("last attempt"), null=True, editable=False)

    class Meta:
        verbose_name = _("blocked picture")
        verbose_name_plural = _("blocked pictures")

    def __str__(self) -> str:
        return self.note or self.sha256[:12]


class PictureAttempt(models.Model):
    """A user's attempt to send what a rule blocks; the newest of each rule, for 90 days."""

    rule = models.ForeignKey(PictureRule, on_delete=models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    item_id = models.BigIntegerField(null=True, help_text="The item that was held.")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(fields=["rule", "-id"], name="attempt_of_rule"),
            models.Index(fields=["at"], name="attempt_age"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} tried {self.rule_id}"


class Verb(models.TextChoices):
    """The kinds of decisions in the log."""

    HOLD = "hold", _("hold for review")
    OPEN = "open", _("open a case")
    APPROVE = "approve", _("approve")
    REJECT = "reject", _("reject")
    END = "end", _("end a live session")
    WARN = "warn", _("warn")
    BAN = "ban", _("ban")
    UNBAN = "unban", _("lift a ban")
    LIST = "list", _("put on a list")
    UNLIST = "unlist", _("take off a list")
    WORD = "word", _("add or change a word")
    UNWORD = "unword", _("remove a word")
    HIDE = "hide", _("hide pictures")
    SHOW = "show", _("show pictures again")
    BLOCK = "block", _("block a picture")
    UNBLOCK = "unblock", _("no longer block a picture")


class Decision(models.Model):
    """One line of the audit log. A trigger of the migration refuses to change or remove it.

    Users stay when accounts are deleted, and nothing else that it names is needed to read it.
    """

    at = models.DateTimeField(_("at"), db_default=Now())
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        db_index=False,
        verbose_name=_("by"),
        help_text="Empty: the site itself, by a rule or by reports.",
    )
    verb = models.CharField(_("kind"), max_length=16, choices=Verb.choices)
    item = models.ForeignKey(Item, on_delete=models.PROTECT, null=True, related_name="+")
    session_id = models.BigIntegerField(null=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+", help_text="Whom it concerns."
    )
    note = models.CharField(_("why"), max_length=500, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    class Meta:
        verbose_name = _("decision")
        verbose_name_plural = _("decisions")
        default_permissions = ("view",)
        indexes = [
            # Decisions that concern a user and none of their items or sessions: bans, warnings, lists.
            models.Index(fields=["user", "-id"], condition=Q(item=None, session_id=None), name="decision_of_user"),
        ]

    def __str__(self) -> str:
        return str(_("decision %(id)s") % {"id": self.pk})
