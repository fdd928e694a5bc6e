"""The right of a suspended user who proved who they are: to read why, to appeal, and to export their data.

It is signed, part of a link, and valid for an hour. It ends with the suspension, and opens nothing else.
"""

import time
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction
from django.utils.crypto import constant_time_compare, salted_hmac

from accounts import proofs
from accounts.models import User
from accounts.signals import suspension_asked
from storage.site_key import known_keys
from web.rest import parse_id

LIFE_SECONDS = 3600


class Suspension(NamedTuple):
    """Why a user is suspended, and until when (None: no end). Without `decision_id` there is nothing to appeal."""

    rule: str
    text: str
    until: datetime | None
    decision_id: int | None


def suspension_of(user: User) -> Suspension | None:
    """The user's suspension. None if they are not suspended. One whose time is over ends here."""
    answers: list[Any] = [answer for _receiver, answer in suspension_asked.send(sender=User, user=user)]
    return next((answer for answer in answers if answer), None)


@transaction.atomic
def make_right(user: User) -> str:
    """The right, of a user who proved who they are. Raises LoginEndedError."""
    proofs.lock_if_valid(user, is_active=False)
    until = int(time.time()) + LIFE_SECONDS
    return f"{user.pk}.{until}.{_digest(user, until)}"


def user_of_right(right: str) -> tuple[User, Suspension] | None:
    """Who has this right, and their suspension. None if it has ended."""
    number, _, rest = right.partition(".")
    seconds, _, digest = rest.partition(".")
    pk, until = parse_id(number), parse_id(seconds)
    if pk is None or until is None:
        return None
    if not 0 <= until - time.time() <= LIFE_SECONDS:  # a clock may have been set back
        return None
    user = User.objects.filter(pk=pk, is_active=False, deleted_at=None).first()
    if user is None or not any(constant_time_compare(digest, _digest(user, until, key)) for key in known_keys()):
        return None
    suspension = suspension_of(user)
    return (user, suspension) if suspension else None


def _digest(user: User, until: int, key: str | None = None) -> str:
    words = f"{user.pk} {until} {user._get_session_auth_hash(key)}"
    return salted_hmac("accounts.suspension", words, secret=key, algorithm="sha256").hexdigest()
