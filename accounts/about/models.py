"""The site's row and its rules."""

import zoneinfo

from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator, RegexValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from accounts.about import colours
from web.languages import default_choices

NAME = "feedsite"
"""Default name."""
NAME_LENGTH = 40
SHORT_LENGTH = 200
DESCRIPTION_LENGTH = 5_000
RULE_LENGTH = 500
ANNOUNCEMENT_LENGTH = 500


def check_zone(name: str) -> None:
    """Raise ValidationError for an unknown time zone."""
    if name not in zoneinfo.available_timezones():
        raise ValidationError(_("There is no such time zone."), code="zone")


one_line = RegexValidator(r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*\Z", _("One line, without control characters."))


class SignUp(models.TextChoices):
    """How people join."""

    OPEN = "open", _("open: anyone may join")
    INVITE = "invite", _("by invitation")
    APPROVAL = "approval", _("by approval: an admin decides on each")
    CLOSED = "closed", pgettext_lazy("sign-up", "closed")


class Looking(models.TextChoices):
    """Who may see public pages."""

    EVERYBODY = "everybody", _("anyone, without signing in")
    MEMBERS = "members", _("members only; all others see this site's description and its sign-up")


class SiteSettings(models.Model):
    """The site's description, and who may look and join, in at most one row."""

    id = models.SmallIntegerField(primary_key=True, default=1, editable=False)
    name = models.CharField(
        _("name"),
        max_length=NAME_LENGTH,
        default=NAME,
        db_default=NAME,
        validators=[one_line],
        help_text=_("Shown in the title of every page, beside the logo, and in mails."),
    )
    short_description = models.CharField(
        _("in a sentence"),
        max_length=SHORT_LENGTH,
        blank=True,
        default="",
        db_default="",
        validators=[one_line],
        help_text=_("Shown to people who are about to sign up, and where others link to the site."),
    )
    description = models.TextField(
        _("description"),
        blank=True,
        default="",
        db_default="",
        validators=[MaxLengthValidator(DESCRIPTION_LENGTH)],
        help_text=_("The purpose of this site, and its people. Empty lines part paragraphs; addresses become links."),
    )
    contact_email = models.EmailField(_("contact by e-mail"), blank=True, default="", db_default="")
    contact_username = models.CharField(
        _("contact by username"),
        max_length=30,
        blank=True,
        default="",
        db_default="",
        validators=[RegexValidator(r"^[A-Za-z0-9_-]*\Z", _("A username of this site, without @."))],
    )
    logo = models.JSONField(null=True, blank=True, editable=False, help_text="The facts of a picture (media.objects).")
    accent = models.CharField(
        _("accent colour"),
        max_length=7,
        blank=True,
        default="",
        db_default="",
        validators=[colours.check],
        help_text=_("Of buttons and links, such as #2457c5. Empty: the colour the site came with."),
    )
    language = models.CharField(
        _("default language"),
        max_length=10,
        blank=True,
        default="",
        db_default="",
        choices=default_choices,
        help_text=_("For readers whose browser asks for no language of this site."),
    )
    time_zone = models.CharField(
        _("time zone"),
        max_length=64,
        blank=True,
        default="",
        db_default="",
        validators=[check_zone],
        help_text=_("An IANA name such as Asia/Shanghai, for readers whose own is not known. Empty: as configured."),
    )
    looking = models.CharField(
        _("who may look"),
        max_length=16,
        choices=Looking.choices,
        default=Looking.EVERYBODY,
        db_default=Looking.EVERYBODY,
        help_text=_("Of public posts, profiles and the search."),
    )
    sign_up = models.CharField(
        _("who may join"), max_length=16, choices=SignUp.choices, default=SignUp.OPEN, db_default=SignUp.OPEN
    )
    members_invite = models.BooleanField(
        _("members may invite"),
        default=False,
        db_default=False,
        help_text=_("Otherwise only staff with the permission make invitations."),
    )
    announcement = models.CharField(
        _("announcement"),
        max_length=ANNOUNCEMENT_LENGTH,
        blank=True,
        default="",
        db_default="",
        help_text=_("Shown at the top of every page until its reader dismisses it."),
    )
    announcement_until = models.DateTimeField(
        _("announced until"), null=True, blank=True, help_text=_("Empty: until you remove it.")
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

    number = models.SmallIntegerField(_("number"), help_text=_("Rules are shown in the order of their numbers."))
    text = models.CharField(_("rule"), max_length=RULE_LENGTH, validators=[one_line])
    withdrawn_at = models.DateTimeField(_("withdrawn"), null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("rule of the site")
        verbose_name_plural = _("rules of the site")
        ordering = ["number", "id"]

    def __str__(self) -> str:
        return gettext("%(number)s. %(text)s") % {"number": self.number, "text": self.text}
