"""Profile fields: pairs of label and text."""

from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

MOST = 4
LABEL_LENGTH, TEXT_LENGTH = 50, 255

Pair = tuple[str, str]


def cleaned(pairs: Iterable[Pair]) -> list[dict[str, str]]:
    """The pairs for User.profile_fields. Raises ValidationError."""
    found = [(" ".join(label.split()), " ".join(text.split())) for label, text in pairs]
    found = [pair for pair in found if any(pair)]
    if len(found) > MOST:
        raise ValidationError(
            ngettext("You can have at most %(count)s field.", "You can have at most %(count)s fields.", MOST)
            % {"count": MOST}
        )
    if not all(all(pair) for pair in found):
        raise ValidationError(_("Fill in both the label and the content."))
    if any(len(label) > LABEL_LENGTH or len(text) > TEXT_LENGTH for label, text in found):
        lengths = {"label": LABEL_LENGTH, "text": TEXT_LENGTH}
        raise ValidationError(_("Labels can have up to %(label)s characters, contents up to %(text)s.") % lengths)
    return [{"name": label, "value": text} for label, text in found]
