from django import forms
from django.utils.translation import gettext_lazy as _

EVERYONE, SELF = "kept", "self"


class ArchiveForm(forms.Form):
    """The upload of an archive."""

    BUSY = _("Your last archive is still importing. Wait until it's done, or stop it.")
    CAP = _("You can import five archives a day. Try again tomorrow.")
    FULL = _("The site has no space for your file right now. Try again later.")
    file = forms.FileField(
        label=_("Archive"), widget=forms.FileInput(attrs={"accept": ".zip,.tar.gz,.tgz,application/zip"})
    )
    audience = forms.ChoiceField(
        label=_("Who can see the posts"),
        choices=[
            (EVERYONE, _("The same people as there, or fewer")),
            (SELF, _("Only you")),
        ],
        help_text=_("Public posts stay public. Unlisted and followers-only posts will be for your followers here."),
        initial=EVERYONE,
    )
    profile = forms.BooleanField(
        label=_("Fill the gaps in my profile"),
        required=False,
        initial=True,
        help_text=_("Name, bio, picture and banner."),
    )
