"""Rules for display names."""

import re
from functools import cache

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from accounts.about.site import current
from accounts.joining.lookalikes import skeleton_of_words
from web.letters import compiled, is_blank

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_BIDI_CONTROLS = compiled(r"\p{Bidi_Control}")

_OFFICES = (
    *("admin", "admins", "administrator", "administration", "moderator", "moderators", "moderation"),
    *("staff", "team", "official", "support", "help", "system", "root", "owner"),
    *("管理员", "管理員", "版主", "官方", "客服", "站长", "站長", "系统", "系統"),
)
"""Names that speak for a site."""


@cache
def _offices() -> frozenset[str]:
    """The skeletons of `_OFFICES`. They are built at first use: the table of letters is large."""
    return frozenset(map(skeleton_of_words, _OFFICES))


def check_imitation(name: str) -> None:
    """Raise ValidationError for a name like the site's or an office."""
    words, site = skeleton_of_words(name), skeleton_of_words(current().name)
    rest = words.replace(site, "") if site else words
    if words and (words == site or rest in _offices()):
        raise ValidationError(_("This name is reserved for this site's admins."), code="imitation")


def check_display_name(name: str) -> None:
    """Raise ValidationError for controls, or nothing visible."""
    if _CONTROLS.search(name):
        raise ValidationError(_("Use a single line without control characters."), code="control")
    if _BIDI_CONTROLS.search(name):
        raise ValidationError(_("Remove the characters that change the writing direction."), code="bidi")
    if name and is_blank(name):
        raise ValidationError(_("Enter at least one visible character."), code="invisible")
