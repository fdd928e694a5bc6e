from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.template.loader import get_template
from django.utils import timezone

from accounts.mail.letters import single_line, template_of
from accounts.mail.models import ADDRESS_LENGTH, Letter, LetterState
from accounts.mail.sending import send_due

LIFE = timedelta(days=3)
"""How long a letter is worth sending, by default."""


@transaction.atomic
def send(
    *, kind: str, to: str, language: str, context: dict[str, Any], user_id: int | None = None, life: timedelta = LIFE
) -> None:
    """Write a letter. Workers send it after the commit, but not after `life`. Raises ValueError for an invalid address.

    `kind`: its template, `templates/mail/<kind>.txt`. `context`: JSON for it.
    """
    get_template(template_of(kind))  # a missing template fails in the caller, not in the worker
    if not is_address(to):
        raise ValueError("not an e-mail address")
    Letter.objects.create(
        kind=kind,
        address=to,
        user_id=user_id,
        language=language,
        context={name: single_line(value) for name, value in context.items()},
        expires_at=timezone.now() + life,
    )
    send_due.delay_on_commit()


def is_address(text: str) -> bool:
    """Whether it is one valid address on one line, of a domain with a name: a@[127.0.0.1] is none."""
    try:
        validate_email(text)
    except ValidationError:
        return False
    return len(text) <= ADDRESS_LENGTH and text.isprintable() and not text.endswith("]")


def retry(*, letter_id: int) -> bool:
    """Retry a failed letter. False if it did not fail or has expired."""
    given_up = Letter.objects.filter(pk=letter_id, state=LetterState.FAILED, expires_at__gt=timezone.now())
    if not given_up.update(state=LetterState.WAITING, attempts=0, next_at=timezone.now()):
        return False
    send_due.delay_on_commit()
    return True


def forget(*, user_id: int, limit: int) -> int:
    """Delete up to `limit` of a user's letters."""
    ids = list(Letter.objects.filter(user_id=user_id).values_list("pk", flat=True)[:limit])
    return Letter.objects.filter(pk__in=ids).delete()[0]
