"""Names that speak for the site: those of offices, the site's own, and its superusers'. Look-alikes count."""

import re
from functools import cache

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from accounts.about.site import current
from accounts.lookalikes import skeleton_of_words
from accounts.models import User

_OFFICES = (
    *("admin", "admins", "administrator", "administrators", "administration", "sysadmin", "superuser", "root"),
    *("mod", "mods", "moderator", "moderators", "moderation", "staff", "team", "official", "owner", "system"),
    *("support", "help", "helpdesk", "service", "security", "safety", "privacy", "legal", "billing"),
    *("abuse", "postmaster", "hostmaster", "webmaster", "noreply"),
    *("管理员", "管理員", "版主", "官方", "客服", "站长", "站長", "系统", "系統", "安全", "工作人员", "工作人員"),
)
"""Names that speak for a site, also several in a row."""


@cache
def _official_names(site: str) -> re.Pattern[str]:
    """Skeletons of names that speak for a site with this skeleton. Built at first use, because the table of letters is
    large.
    """
    names = [site, *map(skeleton_of_words, _OFFICES)]
    return re.compile(f"(?:the)?(?:{'|'.join(re.escape(name) for name in names if name)})+")


def check_imitation(name: str, user: User | None = None) -> None:
    """Raise ValidationError for a username or display name that speaks for the site, unless `user` is staff, or that
    is a superuser's, unless it is their own.
    """
    shapes = {skeleton_of_words(name), skeleton_of_words(name.rstrip("0123456789"))} - {""}
    speaking = _official_names(skeleton_of_words(current().name))
    is_staff = user is not None and user.is_staff
    if (not is_staff and any(map(speaking.fullmatch, shapes))) or shapes & _superusers(user):
        raise ValidationError(_("This name is reserved for this site's admins."), code="imitation")


def _superusers(user: User | None) -> set[str]:
    """The skeletons of the other superusers' names."""
    others = User.objects.active().filter(is_superuser=True).exclude(pk=user.pk if user else 0)
    return {skeleton_of_words(name) for names in others.values_list("username", "display_name") for name in names}
