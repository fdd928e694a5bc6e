"""Invitation links, of staff with the permission, and of members if the site allows it."""

import re
import secrets
from datetime import timedelta

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models, transaction
from django.db.models import F, Q
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.about.site import current
from accounts.joining_models import Invitation, Invited
from accounts.mail import actions as mail
from accounts.models import User
from web import rates

CODE = re.compile(r"[A-Za-z0-9_-]+")
MOST_USES = 1_000
MOST_DAYS = 365
GOOD = 50
"""Most valid invitations of a member."""
LATEST = 100
"""Newest invitations on a member's page, valid or not."""
MEMBERS_USES = 10
"""Most uses of a member's invitation."""


def may_invite(user: User) -> bool:
    """Whether the user may make invitations."""
    return current().members_invite or is_trusted(user)


def is_trusted(user: User) -> bool:
    """Whether the user may make invitations of any size."""
    return user.has_perm("accounts.add_invitation")


@transaction.atomic
def create(*, user: User, most_uses: int = 1, days: int | None = 7, address: str = "") -> Invitation:
    """Make an invitation, and send it to `address`. `days` None: no end. Raises PermissionDenied, ValidationError."""
    if not may_invite(user):
        raise PermissionDenied
    trusted = is_trusted(user)
    most = MOST_USES if trusted else MEMBERS_USES
    if not 1 <= most_uses <= most:
        raise ValidationError({"most_uses": _("Enter a number from 1 to %(most)d.") % {"most": most}})
    if days is None and not trusted:
        raise ValidationError({"days": _("Choose when it expires.")})
    if days is not None and not 1 <= days <= MOST_DAYS:
        raise ValidationError({"days": _("Enter a number from 1 to %(most)d.") % {"most": MOST_DAYS}})
    User.objects.locked().get(pk=user.pk)  # a second call at once counts the first
    if not trusted and valid_of(user).count() >= GOOD:
        words = ngettext(
            "You have %(count)d unused invitation. Revoke it first.",
            "You have %(count)d unused invitations. Revoke one first.",
            GOOD,
        )
        raise ValidationError(words % {"count": GOOD})
    until = None if days is None else timezone.now() + timedelta(days=days)
    row = Invitation.objects.create(code=secrets.token_urlsafe(16), made_by=user, most_uses=most_uses, expires_at=until)
    if address:
        _send(row, address.strip().lower())
    return row


def _send(row: Invitation, address: str) -> None:
    """Send an invitation by e-mail. Raises ValidationError for an invalid address. The inviter does not learn whether
    the address has an account.
    """
    if not mail.is_address(address):
        raise ValidationError(
            {"email": ValidationError(_("This isn't an email address. Check it for typos."), code="invalid")}
        )
    if rates.hit("invite_address", address) is not None:
        return
    mail.send(
        kind="invitation",
        to=address,
        language=row.made_by.language or translation.get_language() or "",
        context={
            "name": row.made_by.username,
            "link": f"{settings.SITE_URL}{reverse('invite', args=[row.code])}",
            "until": f"{row.expires_at:%Y-%m-%d}" if row.expires_at else "",
        },
        user_id=row.made_by_id,
    )


def valid_of(user: User) -> "models.QuerySet[Invitation]":
    """The user's valid invitations."""
    is_over = Q(expires_at__lte=timezone.now())
    return Invitation.objects.filter(
        ~is_over | Q(expires_at=None), made_by=user, revoked_at=None, uses__lt=F("most_uses")
    )


def made_by(user: User) -> list[Invitation]:
    """The user's latest invitations, then older valid ones."""
    latest = list(Invitation.objects.filter(made_by=user).order_by("-pk")[:LATEST])
    older = valid_of(user).filter(pk__lt=latest[-1].pk).order_by("-pk")[:GOOD] if len(latest) == LATEST else []
    return [*latest, *older]


def revoke(*, invitation_id: int, user: User | None = None) -> bool:
    """Revoke an invitation, only `user`'s if given. False if nothing was revoked."""
    rows = Invitation.objects.filter(pk=invitation_id, revoked_at=None)
    return bool((rows.filter(made_by=user) if user else rows).update(revoked_at=timezone.now()))


def find(code: str) -> Invitation | None:
    """The valid invitation, if its maker may still invite."""
    if not CODE.fullmatch(code):
        return None
    row = Invitation.objects.select_related("made_by").filter(code=code).first()
    return row if row is not None and row.is_good and row.made_by.is_active and may_invite(row.made_by) else None


def is_valid(code: str) -> bool:
    """Whether the code works."""
    return find(code) is not None


def use(code: str) -> Invitation | None:
    """Count a use in the caller's transaction. None if invalid."""
    row = Invitation.objects.select_for_update().filter(code=code).first() if CODE.fullmatch(code) else None
    if row is None or find(code) is None:
        return None
    Invitation.objects.filter(pk=row.pk).update(uses=F("uses") + 1)
    return row


@transaction.atomic
def purge(*, user: User, limit: int) -> int:
    """Delete about `limit` rows of a deleted account."""
    gone = Invited.objects.filter(user=user).delete()[0]
    theirs = Invitation.objects.filter(made_by=user)
    came = Invited.objects.filter(invitation__in=theirs).values_list("pk", flat=True)[:limit]
    if rows := list(came):
        return gone + Invited.objects.filter(pk__in=rows).delete()[0]
    return gone + Invitation.objects.filter(pk__in=list(theirs.values_list("pk", flat=True)[:limit])).delete()[0]
