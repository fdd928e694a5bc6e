from django.db import models
from django.db.models.functions import Lower, Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

CODE_LENGTH = 32
REASON_LENGTH = 1_000
PASSWORD_HASH_LENGTH = 128


class Invitation(models.Model):
    """A sign-up link with limited uses and time."""

    code = models.CharField(max_length=CODE_LENGTH, unique=True)
    made_by = models.ForeignKey(
        "accounts.User",
        on_delete=models.CASCADE,
        related_name="invitations",
        db_index=False,
        verbose_name=_("created by"),
    )
    created_at = models.DateTimeField(_("created"), db_default=Now())
    expires_at = models.DateTimeField(_("until"), null=True, blank=True)
    uses = models.IntegerField(_("uses"), default=0, db_default=0)
    most_uses = models.IntegerField(_("limit"), default=1, db_default=1)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    class Meta:
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")
        constraints = [
            models.CheckConstraint(condition=models.Q(uses__lte=models.F("most_uses")), name="invitation_uses"),
        ]
        indexes = [
            models.Index(fields=["made_by", "-id"], name="invitation_maker"),
            models.Index(
                fields=["made_by", "-id"],
                name="invitation_unused",
                condition=models.Q(revoked_at=None, uses__lt=models.F("most_uses")),
            ),
        ]

    def __str__(self) -> str:
        return str(_("invitation %(id)s") % {"id": self.pk})

    @property
    def is_good(self) -> bool:
        """Whether it still works."""
        is_over = self.expires_at is not None and self.expires_at <= timezone.now()
        return self.revoked_at is None and not is_over and self.uses < self.most_uses


class Invited(models.Model):
    """The invitation that an account used."""

    user = models.OneToOneField("accounts.User", on_delete=models.CASCADE, primary_key=True, related_name="invited")
    invitation = models.ForeignKey(
        Invitation, on_delete=models.CASCADE, related_name="invited", db_index=False, verbose_name=_("invitation")
    )

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["invitation", "user"], name="invited_invitation")]

    def __str__(self) -> str:
        return f"{self.user_id} by invitation {self.invitation_id}"


class ApplicationQuerySet(models.QuerySet["Application"]):
    """Reads applications."""

    def named(self, username: str) -> "ApplicationQuerySet":
        """The application for this name, in any case."""
        return self.alias(lower_username=Lower("username")).filter(lower_username=username.lower())


class Application(models.Model):
    """A requested account. A decision or time deletes the row."""

    username = models.CharField(_("username"), max_length=30)
    display_name = models.CharField(_("display name"), max_length=50, blank=True)
    password = models.CharField(max_length=PASSWORD_HASH_LENGTH, editable=False, help_text="Hashed, as a user's.")
    email = models.EmailField(_("email"), blank=True)
    language = models.CharField(max_length=10, blank=True, help_text="Of the letter that tells the decision.")
    reason = models.TextField(_("reason"), max_length=REASON_LENGTH, blank=True)
    created_at = models.DateTimeField(_("applied"), db_default=Now(), db_index=True)

    objects = ApplicationQuerySet.as_manager()

    class Meta:
        verbose_name = _("application")
        verbose_name_plural = _("applications")
        permissions = [("decide_application", gettext_noop("Can decide on applications"))]
        default_permissions = ("view",)
        constraints = [models.UniqueConstraint(Lower("username"), name="application_lower_username")]

    def __str__(self) -> str:
        return str(_("application %(id)s") % {"id": self.pk})
