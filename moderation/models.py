"""Tables of moderation: rules, cases, reports and the log."""

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
from items.filters.matching import fold
from items.models import Item


class WordRule(models.Model):
    """A word or phrase that holds items for review. A trigger renews `WordListVersion`."""

    text = models.CharField(_("word or phrase"), max_length=100, unique=True)
    whole = models.BooleanField(
        _("whole words only"),
        default=True,
        help_text=_("“cat” won't match “category”. Text without spaces, like Chinese, matches anywhere."),
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
        """The text as compared. Raises ValidationError if empty."""
        folded = fold(self.text)
        if not folded:
            raise ValidationError({"text": _("Type something visible.")})
        return folded

    def clean(self) -> None:
        """Raise ValidationError if the rule finds nothing, or what another rule does."""
        folded = self.comparable()
        others = WordRule.objects.exclude(pk=self.pk).values_list("text", flat=True)
        if same := next((text for text in others if fold(text) == folded), None):
            raise ValidationError({"text": _("The rule “%(text)s” already covers this.") % {"text": same}})


class WordListVersion(models.Model):
    """One row. Processes compile the rules again when its random value changes."""

    id = models.SmallIntegerField(primary_key=True)
    version = models.UUIDField()

    def __str__(self) -> str:
        return str(self.version)


class SenderKind(models.TextChoices):
    """Kinds of sender rules."""

    BLACK = "black", _("always review: every post waits for a moderator")
    WHITE = "white", _("trusted: posts are never held")
    BAN = "ban", _("suspended: logged out and hidden from the site")


class SenderRule(models.Model):
    """A rule for all of a sender's items, or a ban."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", verbose_name=_("user")
    )
    kind = models.CharField(_("rule"), max_length=8, choices=SenderKind.choices)
    reason = models.CharField(
        _("why"), max_length=200, blank=True, help_text=_("The user reads it, unless the rule is “trusted”.")
    )
    until = models.DateTimeField(_("until"), null=True, blank=True, help_text=_("Of a suspension. Empty: no end."))
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
        verbose_name = _("account rule")
        verbose_name_plural = _("account rules")
        indexes = [models.Index(fields=["until"], condition=Q(until__isnull=False), name="senderrule_ends")]

    def __str__(self) -> str:
        return f"{self.user}: {self.get_kind_display()}"


class CaseSource(models.TextChoices):
    """What opened a case."""

    RULE = "rule", _("a rule")
    REPORT = "report", _("a report")
    MODERATOR = "hand", _("a moderator")


class CaseState(models.TextChoices):
    """States of a case."""

    OPEN = "open", _("open")
    APPROVED = "approved", _("approved")
    REJECTED = "rejected", _("rejected")


ONE_SUBJECT = Q(item__isnull=False, session_id=None) | Q(item=None, session_id__isnull=False)
OF_ACCOUNT = Q(item=None, session_id=None)


class Case(models.Model):
    """An item, a live session or an account (`host`) for a moderator. At most one open case each.

    `session_id`: of a package unknown here. `host`: the author, also of an item, so that an index finds a user's cases.
    """

    item = models.ForeignKey(Item, on_delete=models.PROTECT, null=True, related_name="+", db_index=False)
    session_id = models.BigIntegerField(null=True)
    host = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    source = models.CharField(_("source"), max_length=8, choices=CaseSource.choices)
    reasons = models.JSONField(default=list, help_text="Why: a list of strings `code: words` (sentences.explained).")
    words = models.ManyToManyField(WordRule, related_name="cases", editable=False)
    state = models.CharField(_("state"), max_length=8, choices=CaseState.choices, default=CaseState.OPEN)
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
            models.CheckConstraint(condition=ONE_SUBJECT | (OF_ACCOUNT & Q(host__isnull=False)), name="case_of_one"),
            models.UniqueConstraint(fields=["session_id"], condition=Q(state="open"), name="case_session_open_once"),
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(state="open"), name="case_queue"),
            models.Index(fields=["item", "-id"], name="case_item"),
            models.Index(fields=["host", "-id"], name="case_author"),
            models.Index(fields=["host"], condition=OF_ACCOUNT & Q(state="open"), name="case_account"),
            models.Index(fields=["session_id", "-id"], condition=Q(session_id__isnull=False), name="case_session"),
        ]

    def __str__(self) -> str:
        return str(_("Case %(id)s") % {"id": self.pk})

    @property
    def is_of_account(self) -> bool:
        """Whether the case is about an account, not an item or session."""
        return self.item_id is None and self.session_id is None

    @property
    def sender(self) -> Any:
        """The author: the item's sender or session's host."""
        return self.item.sender if self.item else self.host


REPORT_LENGTH = 500


class ReportReason(models.TextChoices):
    """Reasons to choose from."""

    SPAM = "spam", _("Spam or advertising")
    ABUSE = "abuse", _("Harassment or hate")
    VIOLENCE = "violence", _("Violence or threats")
    SEXUAL = "sexual", _("Sexual content")
    ILLEGAL = "illegal", _("Against the law")
    FALSE = "false", _("False or misleading")
    OTHER = "other", _("Something else")


class Report(models.Model):
    """A reader's report. One per reader and subject."""

    item = models.ForeignKey(
        Item, on_delete=models.PROTECT, null=True, related_name="+", db_index=False, verbose_name=_("post")
    )
    session_id = models.BigIntegerField(_("live session"), null=True)
    account = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        db_index=False,
        db_constraint=False,
        verbose_name=_("account"),
    )
    reporter = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", verbose_name=_("reported by")
    )
    reason = models.CharField(_("why"), max_length=16, choices=ReportReason.choices)
    text = models.CharField(_("words"), max_length=REPORT_LENGTH, blank=True)
    # No constraint, because rules are never deleted.
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
            models.CheckConstraint(
                condition=(ONE_SUBJECT & Q(account=None)) | (OF_ACCOUNT & Q(account__isnull=False)),
                name="report_of_one",
            ),
        ]
        indexes = [
            models.Index(fields=["created_at"], name="report_at"),
            models.Index(fields=["account", "reporter"], condition=Q(account__isnull=False), name="report_account"),
        ]

    def __str__(self) -> str:
        return str(_("report %(id)s") % {"id": self.pk})


class PictureAction(models.TextChoices):
    """What a picture rule does."""

    HOLD = "hold", _("hold the post for review")
    REJECT = "reject", _("refuse the upload")


DISTANCE = 6
"""Bits of 64 that may differ in similar pictures."""


class PictureRule(models.Model):
    """A picture or video to hold or refuse."""

    sha256 = models.CharField("SHA-256", max_length=64, unique=True, editable=False)
    phash = models.BigIntegerField(null=True, editable=False, help_text="Empty: only the same file is found.")
    action = models.CharField(_("action"), max_length=8, choices=PictureAction.choices)
    distance = models.SmallIntegerField(
        _("difference"),
        default=DISTANCE,
        validators=[MinValueValidator(0), MaxValueValidator(10)],
        help_text=_("From 0 (looks the same) to 10. 6 also finds it resized, recompressed, recolored or stamped."),
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
    """An attempt to send blocked media. Each rule keeps the newest, for 90 days."""

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


GROUNDS_LENGTH = 500
APPEAL_LENGTH = 2_000


class Verb(models.TextChoices):
    """Kinds of decisions."""

    HOLD = "hold", _("hold for review")
    OPEN = "open", _("open a case")
    APPROVE = "approve", _("approve")
    REJECT = "reject", _("reject")
    END = "end", _("end a live session")
    WARN = "warn", _("warn")
    BAN = "ban", _("suspend")
    UNBAN = "unban", _("lift a suspension")
    LIST = "list", _("set an account rule")
    UNLIST = "unlist", _("remove an account rule")
    WORD = "word", _("add or change a word")
    UNWORD = "unword", _("remove a word")
    HIDE = "hide", _("hide pictures")
    SHOW = "show", _("show pictures again")
    BLOCK = "block", _("block a picture")
    UNBLOCK = "unblock", _("unblock a picture")
    UNCARD = "uncard", _("remove a link preview")
    REFUSE = "refuse", _("turn off previews of a domain")
    ACCEPT = "accept", _("turn on previews of a domain")
    READ = "read", _("read a post that is not public")
    GRANT = "grant", _("accept an appeal")
    DENY = "deny", _("reject an appeal")


class Decision(models.Model):
    """An entry of the audit log. A trigger refuses changes. `note` of a reading is its case's id.

    Its `user` reads what is `is_told` (decisions.log_for_subject), but never `by` and `note`.
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
    is_told = models.BooleanField(default=False, db_default=False)
    # No constraint, because rules are never deleted.
    rule = models.ForeignKey(
        Rule, on_delete=models.PROTECT, null=True, related_name="+", db_index=False, db_constraint=False
    )
    text = models.CharField(max_length=GROUNDS_LENGTH, blank=True, default="", db_default="")
    until = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("decision")
        verbose_name_plural = _("decisions")
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["user", "-id"], condition=Q(is_told=True), name="decision_told"),
            models.Index(fields=["at"], condition=Q(is_told=True) | Q(verb=Verb.GRANT), name="decision_counted"),
            # About a user: bans, warnings, lists.
            models.Index(fields=["user", "-id"], condition=Q(item=None, session_id=None), name="decision_of_user"),
        ]

    def __str__(self) -> str:
        return str(_("decision %(id)s") % {"id": self.pk})


class AppealState(models.TextChoices):
    """States of an appeal."""

    WAITING = "waiting", _("waiting")
    ACCEPTED = "accepted", _("accepted")
    REJECTED = "rejected", _("rejected")


class Appeal(models.Model):
    """An appeal against a decision by its subject, one each. Deleting the account empties `text`."""

    decision = models.OneToOneField(Decision, on_delete=models.PROTECT, related_name="appeal")
    text = models.CharField(_("appeal"), max_length=APPEAL_LENGTH)
    state = models.CharField(
        _("state"), max_length=8, choices=AppealState.choices, default=AppealState.WAITING, db_default="waiting"
    )
    answer = models.CharField(_("answer"), max_length=GROUNDS_LENGTH, default="", db_default="")
    created_at = models.DateTimeField(_("at"), db_default=Now())
    answered_at = models.DateTimeField(_("answered"), null=True)
    answered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        db_index=False,
        verbose_name=_("answered by"),
    )

    class Meta:
        verbose_name = _("appeal")
        verbose_name_plural = _("appeals")
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["id"], condition=Q(state="waiting"), name="appeal_queue"),
            models.Index(fields=["created_at"], name="appeal_at"),
        ]

    def __str__(self) -> str:
        return str(_("appeal %(id)s") % {"id": self.pk})


class ReplyTemplate(models.Model):
    """A text that moderators choose instead of writing it again."""

    title = models.CharField(_("title"), max_length=100, unique=True)
    text = models.CharField(_("text"), max_length=GROUNDS_LENGTH, help_text=_("The user reads it."))

    class Meta:
        verbose_name = _("reply template")
        verbose_name_plural = _("reply templates")
        ordering = ["title"]

    def __str__(self) -> str:
        return self.title


class DailyFigures(models.Model):
    """What moderators received and decided on a day of UTC (moderation.figures)."""

    day = models.DateField(primary_key=True)
    reports = models.IntegerField(default=0, db_default=0)
    removals = models.IntegerField(default=0, db_default=0)
    warnings = models.IntegerField(default=0, db_default=0)
    limits = models.IntegerField(default=0, db_default=0)
    suspensions = models.IntegerField(default=0, db_default=0)
    appeals = models.IntegerField(default=0, db_default=0)
    reversals = models.IntegerField(default=0, db_default=0)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.day)
