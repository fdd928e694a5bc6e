"""Sends letters, from the table, which is the queue of record.

An attempt is counted, and the next one dated, in a transaction of its own, before the mail server is asked. The letter
is then sent under a lock of its row, and marked in the same transaction: of two workers one sends it. A worker that
dies after the server took the letter and before the mark was committed has it sent twice, never lost; both have one
Message-ID.

One worker process at a time sends (a hint on the cache server, `keys.mail_turn`; without it several may, each letter
still once). A server that cannot be reached, hangs or refuses the login is left alone for `PAUSE_SECONDS`, whatever
waits for it: so it costs the workers one wait of `EMAIL_TIMEOUT` seconds in that time, and the letters one attempt.

See docs/decisions.md: Letters are rows.
See docs/decisions.md: Own code in place of a library.
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
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from accounts.mail.letters import compose
from accounts.mail.models import Letter, State
from storage import keys
from storage.connections import fetch
from storage.queue import enqueue
from web import rates

logger = logging.getLogger(__name__)

ATTEMPTS = 12
"""Attempts of one letter, over about 20 hours."""
AT_ONCE = 50
"""Letters that one task sends."""
SECONDS = 60
"""Seconds that one task may take; Celery interrupts it then."""
TURN_SECONDS = SECONDS + 30
"""Seconds for which a worker that died keeps others from sending."""
PAUSE_SECONDS = 30
"""Seconds for which a server that does not work is left alone."""
KEPT = timedelta(days=7)
"""How long letters are kept, whatever became of them."""
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
# Those of other states are tidied up at some time.
WAITING = "SELECT FROM mail_letter WHERE state = 'waiting'"
UNREACHED = (OSError, SoftTimeLimitExceeded)
"""Errors of the server, not of the letter; all of smtplib's are OSErrors, and `_try` takes out those of the letter."""


def send_due() -> int:
    """Send letters that are due, at most `AT_ONCE`; how many were sent: 0 while another process sends, or while the
    server is left alone.
    """
    if cache.get(keys.mail_pause()) or cache.add(keys.mail_turn(), 1, TURN_SECONDS) is False:
        return 0
    try:
        sent, may_wait = _send_all()
    finally:
        cache.delete(keys.mail_turn())
    if may_wait:  # other tasks come first; the turn is given back, so that the worker who takes this one sends
        enqueue("mail.send")
    return sent


def _send_all() -> tuple[int, bool]:
    """Send what is due: how many were sent, and whether more may wait."""
    sent = 0
    connection: Any = None
    try:
        for _ in range(AT_ONCE):
            letter_id = _claim()
            if letter_id is None:
                return sent, False
            connection = connection or mail.get_connection()
            try:
                sent += _try(letter_id, connection)
            except UNREACHED as error:
                cache.set(keys.mail_pause(), 1, PAUSE_SECONDS)
                _note(letter_id, error)
                logger.warning(
                    "the mail server does not work; it is asked again in %s s: %s", PAUSE_SECONDS, _said(error)
                )
                if isinstance(error, SoftTimeLimitExceeded):
                    raise
                return sent, False
            except Exception as error:  # of the site: the log has all of it, and the admin's list its last line
                _note(letter_id, error)
                raise
    finally:
        if connection is not None:
            _close(connection)
    return sent, True


def _claim() -> int | None:
    """The next letter that is due, its attempt counted; letters of an address that got many lately are put off."""
    while rows := fetch(CLAIM, {"attempts": ATTEMPTS}):
        letter_id, address = rows[0]
        wait = rates.hit("mail", address.lower())
        if wait is None:
            return int(letter_id)
        later = Now() + timedelta(seconds=wait)
        Letter.objects.filter(pk=letter_id).update(attempts=F("attempts") - 1, next_at=later)
    return None


def _try(letter_id: int, connection: BaseEmailBackend) -> bool:
    """Send one letter; False if the server refused it. Raises `UNREACHED`."""
    try:
        with transaction.atomic():
            letter = (
                Letter.objects.select_for_update(skip_locked=True).filter(pk=letter_id, state=State.WAITING).first()
            )
            if letter is None:  # another process is at it
                return False
            connection.open()
            connection.send_messages([compose(letter)])
            letter.state, letter.sent_at, letter.context, letter.error = State.SENT, timezone.now(), {}, ""
            letter.save(update_fields=["state", "sent_at", "context", "error"])
    except smtplib.SMTPRecipientsRefused as error:
        is_final = all(code >= 500 for code, _words in error.recipients.values())
        _note(letter_id, error, is_final=is_final)
        _reset(connection)
        return False
    except (smtplib.SMTPDataError, smtplib.SMTPSenderRefused) as error:
        _note(letter_id, error)
        _reset(connection)
        return False
    return True


def _note(letter_id: int, error: BaseException, *, is_final: bool = False) -> None:
    """Keep what went wrong; the letter is given up if that is final, or after the last attempt."""
    letters = Letter.objects.filter(pk=letter_id, state=State.WAITING)
    letters.update(error=_said(error))
    (letters if is_final else letters.filter(attempts__gte=ATTEMPTS)).update(state=State.FAILED)


def _said(error: BaseException) -> str:
    """An error on one line. It repeats what the server said, and no letter."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _reset(connection: BaseEmailBackend) -> None:
    """Begin anew after a refusal: some servers hang up then."""
    _close(connection)


def _close(connection: BaseEmailBackend) -> None:
    try:
        connection.close()
    except OSError as error:
        logger.info("the mail server did not take its leave: %s", _said(error))


# --- Upkeep ----------------------------------------------------------------------------------------------
def sweep() -> int:
    """Periodic: give up, expire and forget what is due, then send; how many were sent."""
    now = Now()
    # The last attempt of a worker that died.
    Letter.objects.filter(state=State.WAITING, next_at__lt=now, attempts__gte=ATTEMPTS).update(state=State.FAILED)
    late = Letter.objects.filter(state__in=[State.WAITING, State.FAILED], expires_at__lt=now).order_by("expires_at")
    Letter.objects.filter(pk__in=list(late.values_list("pk", flat=True)[:SWEPT])).update(
        state=State.EXPIRED, context={}
    )
    old = Letter.objects.filter(created_at__lt=now - KEPT).order_by("created_at").values_list("pk", flat=True)[:SWEPT]
    Letter.objects.filter(pk__in=list(old)).delete()
    return send_due()
