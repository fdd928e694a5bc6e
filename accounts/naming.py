"""Rules for display names."""

import re

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from web.letters import compiled, is_blank

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_BIDI_CONTROLS = compiled(r"\p{Bidi_Control}")


def check_display_name(name: str) -> None:
    """Raise ValidationError for controls, or nothing visible."""
    if _CONTROLS.search(name):
        raise ValidationError(_("Use a single line without control characters."), code="control")
    if _BIDI_CONTROLS.search(name):
        raise ValidationError(_("Remove the characters that change the writing direction."), code="bidi")
    if name and is_blank(name):
        raise ValidationError(_("Enter at least one visible character."), code="invisible")
