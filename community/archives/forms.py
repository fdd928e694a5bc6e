from django import forms
from django.utils.translation import gettext_lazy as _

EVERYONE, SELF = "kept", "self"


class ArchiveForm(forms.Form):
    """The upload of an archive."""

    BUSY = _("Your last archive is still being imported. Wait until it is done, or stop it.")
    CAP = _("You may bring five archives in a day. Come back tomorrow.")
    FULL = _("The site has no room for a file at the moment. Try again later.")
    file = forms.FileField(
        label=_("Archive"), widget=forms.FileInput(attrs={"accept": ".zip,.tar.gz,.tgz,application/zip"})
    )
    audience = forms.ChoiceField(
        label=_("Who sees the posts"),
        choices=[
            (EVERYONE, _("Those who saw them there, or fewer")),
            (SELF, _("Only you")),
        ],
        help_text=_("Public posts stay public. Unlisted posts and those for followers are for your followers here."),
        initial=EVERYONE,
    )
    profile = forms.BooleanField(
        label=_("Fill what is empty in your profile"),
        required=False,
        initial=True,
        help_text=_("Name, text about you, picture and banner."),
    )
