"""Letters, the queue of what to send."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

ADDRESS_LENGTH = 254


class LetterState(models.TextChoices):
    """State of a letter."""

    WAITING = "waiting", _("waiting")
    SENT = "sent", _("sent")
    FAILED = "failed", _("given up")
    EXPIRED = "expired", _("expired")


class Letter(models.Model):
    """A letter to one address. `context` may hold links and codes, so it is emptied after sending or expiry."""

    kind = models.CharField(_("kind"), max_length=40, help_text="The name of its text, templates/mail/<kind>.txt.")
    address = models.CharField(_("address"), max_length=ADDRESS_LENGTH)
    user_id = models.BigIntegerField(_("user"), null=True, blank=True)
    language = models.CharField(_("language"), max_length=10, blank=True)
    context = models.JSONField(default=dict)
    state = models.CharField(
        _("state"),
        max_length=8,
        choices=LetterState.choices,
        default=LetterState.WAITING,
        db_default=LetterState.WAITING,
    )
    attempts = models.IntegerField(_("attempts"), default=0, db_default=0)
    error = models.CharField(_("last error"), max_length=300, blank=True, default="", db_default="")
    created_at = models.DateTimeField(_("written"), db_default=Now())
    next_at = models.DateTimeField(_("next try"), db_default=Now())
    expires_at = models.DateTimeField(_("expires"))
    sent_at = models.DateTimeField(_("sent"), null=True, blank=True)

    class Meta:
        verbose_name = _("letter")
        verbose_name_plural = _("letters")
        indexes = [
            models.Index(fields=["next_at"], condition=Q(state="waiting"), name="mail_waiting"),
            models.Index(fields=["expires_at"], condition=Q(state__in=["waiting", "failed"]), name="mail_expiring"),
            models.Index(fields=["-id"], condition=Q(state="failed"), name="mail_failed"),
            models.Index(fields=["created_at"], name="mail_written"),
            models.Index(fields=["user_id"], condition=Q(user_id__isnull=False), name="mail_user"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} → {self.address}"
