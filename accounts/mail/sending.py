"""Sends letters from their table.

One transaction counts the attempt; a second one locks the row, sends and marks it. One process sends at a time
(`keys.mail_turn`). An outage costs one wait and one attempt per `PAUSE_SECONDS`.

See docs/decisions.md: Letters are rows.
"""

import logging
import smtplib
from datetime import timedelta
from typing import Any

from billiard.exceptions import SoftTimeLimitExceeded
from django.core import mail
from django.core.cache import cache
from django.core.mail.backends.base import BaseEmailBackend
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from accounts.mail.letters import compose
from accounts.mail.models import Letter, LetterState
from storage import keys
from storage.connections import fetch
from storage.queue import task
from web import rates

logger = logging.getLogger(__name__)

ATTEMPTS = 12
"""Attempts to send a letter, over about 20 hours."""
AT_ONCE = 50
"""Letters per task."""
SECONDS = 60
"""Time limit of a task. Celery interrupts it then."""
TURN_SECONDS = SECONDS + 30
"""A dead worker blocks others for this long."""
PAUSE_SECONDS = 30
"""Pause after a failure of the server."""
KEPT = timedelta(days=7)
"""How long letters are kept, in any state."""
SWEPT = 1_000

# The pause doubles with each attempt, from a minute to four hours.
CLAIM = """
    UPDATE mail_letter SET attempts = attempts + 1,
        next_at = now() + least(power(2, attempts), 240) * interval '1 minute'
    WHERE id = (
        SELECT id FROM mail_letter
        WHERE state = 'waiting' AND next_at <= statement_timestamp() AND expires_at > now() AND attempts < %(attempts)s
        ORDER BY next_at LIMIT 1 FOR UPDATE SKIP LOCKED
    ) RETURNING id, address
"""
# A try moves `next_at`, so a letter that was tried waits since it was written. If a later letter was sent, the mail
# server works, and refuses only this one.
WAITING = """
    SELECT CASE
        WHEN attempts > 0 AND created_at > coalesce(
            (SELECT max(created_at) FROM mail_letter WHERE state = 'sent'), '-infinity') THEN created_at
        ELSE next_at END
    FROM mail_letter WHERE state = 'waiting'
"""
UNREACHED = (OSError, SoftTimeLimitExceeded)
"""Errors of the server. smtplib's are all OSErrors, and `_send_one` handles those of a letter."""


@task("mail.send", soft_time_limit=SECONDS)
def send_due() -> int:
    """Send up to `AT_ONCE` due letters. Returns how many."""
    if cache.get(keys.mail_pause()) or cache.add(keys.mail_turn(), 1, TURN_SECONDS) is False:
        return 0
    try:
        sent, may_wait = _send_batch()
    finally:
        cache.delete(keys.mail_turn())
    if may_wait:  # let other tasks run first; the turn is free for the worker that takes this one
        send_due.delay()
    return sent


def _send_batch() -> tuple[int, bool]:
    sent = 0
    connection: Any = None
    try:
        for _ in range(AT_ONCE):
            letter_id = _claim()
            if letter_id is None:
                return sent, False
            connection = connection or mail.get_connection()
            try:
                sent += _send_one(letter_id, connection)
            except UNREACHED as error:
                cache.set(keys.mail_pause(), 1, PAUSE_SECONDS)
                _record_error(letter_id, error)
                logger.warning(
                    "the mail server failed. Sending is tried again in %s s: %s", PAUSE_SECONDS, _error_line(error)
                )
                if isinstance(error, SoftTimeLimitExceeded):
                    raise
                return sent, False
            except Exception as error:  # an error of the site: the log has its traceback
                _record_error(letter_id, error)
                raise
    finally:
        if connection is not None:
            _close(connection)
    return sent, True


def _claim() -> int | None:
    while rows := fetch(CLAIM, {"attempts": ATTEMPTS}):
        letter_id, address = rows[0]
        wait = rates.hit("mail", address.lower())
        if wait is None:
            return int(letter_id)
        later = Now() + timedelta(seconds=wait)
        Letter.objects.filter(pk=letter_id).update(attempts=F("attempts") - 1, next_at=later)
    return None


def _send_one(letter_id: int, connection: BaseEmailBackend) -> bool:
    """Send a letter. False if the server refused it or another process sends it. Raises `UNREACHED`."""
    try:
        with transaction.atomic():
            letter = (
                Letter.objects.select_for_update(skip_locked=True)
                .filter(pk=letter_id, state=LetterState.WAITING)
                .first()
            )
            if letter is None:  # another process sends it
                return False
            connection.open()
            connection.send_messages([compose(letter)])
            letter.state, letter.sent_at, letter.context, letter.error = LetterState.SENT, timezone.now(), {}, ""
            letter.save(update_fields=["state", "sent_at", "context", "error"])
    except smtplib.SMTPRecipientsRefused as error:
        is_final = all(code >= 500 for code, _words in error.recipients.values())
        _record_error(letter_id, error, is_final=is_final)
        _close(connection)
        return False
    except (smtplib.SMTPDataError, smtplib.SMTPSenderRefused) as error:
        _record_error(letter_id, error)
        _close(connection)
        return False
    return True


def _record_error(letter_id: int, error: BaseException, *, is_final: bool = False) -> None:
    """Store a letter's error. A final error or the last attempt makes the letter failed."""
    letters = Letter.objects.filter(pk=letter_id, state=LetterState.WAITING)
    letters.update(error=_error_line(error))
    (letters if is_final else letters.filter(attempts__gte=ATTEMPTS)).update(state=LetterState.FAILED)


def _error_line(error: BaseException) -> str:
    """The error on one line of at most 300 characters, without the letter's text."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _close(connection: BaseEmailBackend) -> None:
    """Close the connection after a refusal. The next letter opens a new one."""
    try:
        connection.close()
    except OSError as error:
        logger.info("the mail server did not close the connection properly: %s", _error_line(error))


def unsent() -> QuerySet[Letter]:
    """Letters that were given up, and those of the last day that expired after a failure."""
    expired = Q(state=LetterState.EXPIRED, created_at__gt=Now() - timedelta(days=1)) & ~Q(error="")
    return Letter.objects.filter(Q(state=LetterState.FAILED) | expired)


# --- Upkeep ----------------------------------------------------------------------------------------------
def sweep() -> int:
    """Periodic: fail, expire, delete and send letters."""
    now = Now()
    # Its worker died in the last attempt.
    Letter.objects.filter(state=LetterState.WAITING, next_at__lt=now, attempts__gte=ATTEMPTS).update(
        state=LetterState.FAILED
    )
    late = Letter.objects.filter(state__in=[LetterState.WAITING, LetterState.FAILED], expires_at__lt=now).order_by(
        "expires_at"
    )
    Letter.objects.filter(pk__in=list(late.values_list("pk", flat=True)[:SWEPT])).update(
        state=LetterState.EXPIRED, context={}
    )
    old = Letter.objects.filter(created_at__lt=now - KEPT).order_by("created_at").values_list("pk", flat=True)[:SWEPT]
    Letter.objects.filter(pk__in=list(old)).delete()
    return send_due()
