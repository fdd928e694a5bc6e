from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator, RegexValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from accounts.about import colours
from web.languages import default_choices
from web.times import zone_names

NAME = "feedsite"
"""Default name."""
NAME_LENGTH = 40
SHORT_LENGTH = 200
DESCRIPTION_LENGTH = 5_000
RULE_LENGTH = 500
ANNOUNCEMENT_LENGTH = 500
LEGAL_LENGTH = 20_000


def check_zone(name: str) -> None:
    """Raise ValidationError for an unknown time zone."""
    if name not in zone_names():
        raise ValidationError(_("We don't know this time zone. Use a name like Asia/Shanghai."), code="zone")


one_line = RegexValidator(r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*\Z", _("Use one line, without control characters."))


class SignUp(models.TextChoices):
    """How people join."""

    OPEN = "open", _("open: anyone can join")
    INVITE = "invite", _("invite only")
    APPROVAL = "approval", _("by approval: an admin approves each sign-up")
    CLOSED = "closed", pgettext_lazy("sign-up", "closed")


class PublicAccess(models.TextChoices):
    """Who may see public pages."""

    EVERYBODY = "everybody", _("anyone, no login needed")
    MEMBERS = "members", _("members only: others see just the description and the sign-up page")


class SiteSettings(models.Model):
    """The site's description, and who may look and join, in at most one row."""

    id = models.SmallIntegerField(primary_key=True, default=1, editable=False)
    name = models.CharField(
        _("name"),
        max_length=NAME_LENGTH,
        default=NAME,
        db_default=NAME,
        validators=[one_line],
        help_text=_("Shown in the title of every page, beside the logo, and in letters."),
    )
    short_description = models.CharField(
        _("short description"),
        max_length=SHORT_LENGTH,
        blank=True,
        default="",
        db_default="",
        validators=[one_line],
        help_text=_("Shown on the sign-up page and in previews of links to the site."),
    )
    description = models.TextField(
        _("description"),
        blank=True,
        default="",
        db_default="",
        validators=[MaxLengthValidator(DESCRIPTION_LENGTH)],
        help_text=_(
            "What this site is for and who runs it. Leave an empty line between paragraphs. Addresses become links."
        ),
    )
    contact_email = models.EmailField(_("contact email"), blank=True, default="", db_default="")
    contact_username = models.CharField(
        _("contact account"),
        max_length=30,
        blank=True,
        default="",
        db_default="",
        validators=[RegexValidator(r"^[A-Za-z0-9_-]*\Z", _("A username on this site, without the @."))],
    )
    logo = models.JSONField(null=True, blank=True, editable=False, help_text="The facts of a picture (media.objects).")
    accent = models.CharField(
        _("accent color"),
        max_length=7,
        blank=True,
        default="",
        db_default="",
        validators=[colours.check_accent],
        help_text=_("For buttons and links. The default is #3457d5."),
    )
    language = models.CharField(
        _("default language"),
        max_length=10,
        blank=True,
        default="",
        db_default="",
        choices=default_choices,
        help_text=_("For readers whose browser asks for a language this site doesn't have."),
    )
    time_zone = models.CharField(
        _("time zone"),
        max_length=64,
        blank=True,
        default="",
        db_default="",
        validators=[check_zone],
        help_text=_(
            "An IANA name like Asia/Shanghai, for readers whose time zone we don't know. Leave empty to "
            "use the configured one."
        ),
    )
    looking = models.CharField(
        _("who can browse"),
        max_length=16,
        choices=PublicAccess.choices,
        default=PublicAccess.EVERYBODY,
        db_default=PublicAccess.EVERYBODY,
        help_text=_("Public posts, profiles and search."),
    )
    sign_up = models.CharField(
        _("who can join"), max_length=16, choices=SignUp.choices, default=SignUp.OPEN, db_default=SignUp.OPEN
    )
    members_invite = models.BooleanField(
        _("members can invite people"),
        default=False,
        db_default=False,
        help_text=_("Otherwise only staff with that permission can create invitations."),
    )
    announcement = models.CharField(
        _("announcement"),
        max_length=ANNOUNCEMENT_LENGTH,
        blank=True,
        default="",
        db_default="",
        help_text=_("Shown at the top of every page until readers close it."),
    )
    announcements = models.JSONField(
        default=dict, db_default={}, blank=True, editable=False, help_text="The announcement in languages, by code."
    )
    announcement_until = models.DateTimeField(
        _("show until"), null=True, blank=True, help_text=_("Leave empty to show it until you remove it.")
    )
    terms = models.TextField(
        _("terms"),
        blank=True,
        default="",
        db_default="",
        validators=[MaxLengthValidator(LEGAL_LENGTH)],
        help_text=_("A line that begins with # is a heading. Leave an empty line between paragraphs."),
    )
    privacy = models.TextField(
        _("privacy"),
        blank=True,
        default="",
        db_default="",
        validators=[MaxLengthValidator(LEGAL_LENGTH)],
        help_text=_("The draft says what this software stores. Add who runs the site, and where its servers are."),
    )
    shows_figures = models.BooleanField(
        _("publish figures of moderation"),
        default=False,
        db_default=False,
        help_text=_("A public page with yearly numbers of reports, decisions and appeals, linked from the about page."),
    )
    read_only_why = models.CharField(
        max_length=SHORT_LENGTH, blank=True, default="", db_default="", validators=[one_line], editable=False
    )
    """Reason for the read-only mode (accounts.about.read_only). Empty: off."""
    changed_at = models.DateTimeField(_("changed"), db_default=Now(), editable=False)
    user_count = models.BigIntegerField(default=0, db_default=0, editable=False)
    active_count = models.BigIntegerField(default=0, db_default=0, editable=False)
    """Users seen within a month."""
    item_count = models.BigIntegerField(default=0, db_default=0, editable=False)

    class Meta:
        verbose_name = _("the site")
        verbose_name_plural = _("the site")
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="site_one_row")]

    def __str__(self) -> str:
        return self.name


class Rule(models.Model):
    """A rule of the site, perhaps withdrawn."""

    number = models.SmallIntegerField(_("number"), help_text=_("Rules are listed by number."))
    text = models.CharField(_("rule"), max_length=RULE_LENGTH, validators=[one_line])
    withdrawn_at = models.DateTimeField(_("withdrawn"), null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("site rule")
        verbose_name_plural = _("site rules")
        ordering = ["number", "id"]

    def __str__(self) -> str:
        return gettext("%(number)s. %(text)s") % {"number": self.number, "text": self.text}
