import time
from datetime import timedelta
from typing import Any

import pytest
from celery import current_app
from django.core.cache import cache
from django.db import transaction
from django.template import TemplateDoesNotExist
from django.utils import timezone

from accounts.mail import sending
from accounts.mail.actions import forget, retry, send
from accounts.mail.models import Letter, LetterState
from storage import keys
from tests.support.at_once import at_once
from tests.support.mail_servers import MailServer, closed_port, post, words
from tests.support.workers import Workers

__all__ = ["post"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    cache.delete(keys.mail_pause())
    cache.delete(keys.mail_turn())


def write(to: str = "ann@example.org", **context: Any) -> Letter:
    send(kind="test", to=to, language="en", context={"name": "ann", **context}, user_id=7)
    return Letter.objects.latest("pk")


def again() -> None:
    cache.delete(keys.mail_pause())
    Letter.objects.filter(state=LetterState.WAITING).update(next_at=timezone.now())


def test_a_letter_is_sent_once_and_its_secrets_go(post: MailServer) -> None:
    letter = write()

    assert sending.send_due() == 1
    assert sending.send_due() == 0

    (taken,) = post.letters
    assert taken["To"] == "ann@example.org"
    assert taken["Subject"] == "Test email from feedsite"
    assert taken["Auto-Submitted"] == "auto-generated"
    assert "ann" in words(taken)
    assert "ann" in words(taken, "html")
    letter.refresh_from_db()
    assert (letter.state, letter.context, letter.attempts) == (LetterState.SENT, {}, 1)


def test_a_letter_is_of_its_transaction(post: MailServer) -> None:
    with transaction.atomic():
        write()
        transaction.set_rollback(True)

    assert sending.sweep() == 0
    assert not post.letters


@pytest.mark.parametrize(
    "address",
    [
        "ann@example.org\nBcc: bob@example.org",
        "ann@example.org\r\nBcc: bob@example.org",
        "ann@example.org,bob@example.org",
        "ann@example.org bob@example.org",
        "Ann <ann@example.org>",
        "ann@example.org\u2028x",
        f"{'a' * 300}@example.org",
        "",
    ],
)
def test_no_address_brings_a_header(address: str) -> None:
    with pytest.raises(ValueError, match="not an e-mail address"):
        write(address)
    assert not Letter.objects.exists()


def test_no_word_brings_a_header_or_a_paragraph(post: MailServer) -> None:
    write(name="x\r\nBcc: bob@example.org\n\nhttps://evil.example.net\n\n<b>hello</b>\x00\u2029")

    sending.send_due()

    (taken,) = post.letters
    assert taken["Bcc"] is None
    (line,) = words(taken).splitlines()
    assert line == "x Bcc: bob@example.org https://evil.example.net <b>hello</b> asked for this email."
    html = words(taken, "html")
    assert 'href="https://evil' not in html
    assert "&lt;b&gt;hello" in html


@pytest.mark.slow
def test_a_frozen_server_delays_one_task_and_loses_nothing(post: MailServer) -> None:
    post.mode = "frozen"
    for number in range(5):
        write(f"reader{number}@example.org")

    begun = time.monotonic()
    assert sending.send_due() == 0
    assert sending.send_due() == 0  # left alone
    assert time.monotonic() - begun < 3
    assert post.connections == 1

    post.mode = ""
    again()
    assert sending.send_due() == 5
    assert {letter["To"] for letter in post.letters} == {f"reader{number}@example.org" for number in range(5)}


def test_a_dead_server_loses_nothing(post: MailServer, settings: Any) -> None:
    letter = write()
    settings.EMAIL_PORT = closed_port()
    assert sending.send_due() == 0
    letter.refresh_from_db()
    assert "refused" in letter.error
    assert letter.next_at > timezone.now() + timedelta(seconds=50)

    settings.EMAIL_PORT = post.port
    again()
    assert sending.send_due() == 1


def test_a_server_that_dies_before_it_answers_may_get_a_letter_twice_and_says_so_by_its_id(post: MailServer) -> None:
    write()
    post.mode = "dies"
    assert sending.send_due() == 0

    post.mode = ""
    again()
    assert sending.send_due() == 1
    first, second = post.letters
    assert first["Message-ID"] == second["Message-ID"]


@pytest.mark.slow
def test_attempts_have_an_end(post: MailServer, settings: Any) -> None:
    settings.RATE_SCALE = 100
    letter = write()
    settings.EMAIL_PORT = closed_port()
    for _ in range(sending.ATTEMPTS + 2):
        sending.send_due()
        again()

    letter.refresh_from_db()
    assert (letter.state, letter.attempts) == (LetterState.FAILED, sending.ATTEMPTS)

    settings.EMAIL_PORT = post.port
    assert retry(letter_id=letter.pk)
    assert not retry(letter_id=letter.pk)
    assert sending.send_due() == 1


def test_the_last_attempt_of_a_worker_that_died_is_given_up() -> None:
    letter = write()
    Letter.objects.update(attempts=sending.ATTEMPTS)

    sending.sweep()

    letter.refresh_from_db()
    assert letter.state == LetterState.FAILED


def test_a_mailbox_that_is_not_there_is_given_up_at_once_and_others_go_on(post: MailServer) -> None:
    post.mode = "unknown"
    letter = write()
    sending.send_due()
    letter.refresh_from_db()
    assert letter.state == LetterState.FAILED

    post.mode = "busy"
    other = write()
    sending.send_due()
    other.refresh_from_db()
    assert other.state == LetterState.WAITING

    post.mode = ""
    again()
    assert sending.send_due() == 1


def test_a_letter_that_is_refused_holds_up_no_other(post: MailServer) -> None:
    post.mode = "suspicious"
    for _ in range(3):
        write()

    sending.send_due()

    assert len(post.letters) == 3
    assert Letter.objects.filter(state=LetterState.WAITING, attempts=1).count() == 3


def test_a_login_that_is_refused_leaves_the_server_alone(post: MailServer, settings: Any) -> None:
    settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "feedsite", "s3cret"
    post.mode = "locked"
    write()
    write()
    sending.send_due()
    assert len(post.logins) == 1
    assert "s3cret" not in Letter.objects.exclude(error="").get().error


@pytest.mark.slow
def test_two_workers_send_a_letter_once(post: MailServer) -> None:
    for number in range(20):
        write(f"reader{number}@example.org")

    at_once(*[sending._send_batch] * 4)  # as without the cache server, which holds the lock

    while Letter.objects.filter(state=LetterState.WAITING).exists():
        again()
        sending._send_batch()
    assert len(post.letters) == len({letter["Message-ID"] for letter in post.letters}) == 20


def test_one_address_gets_so_many_a_minute(post: MailServer, settings: Any) -> None:
    settings.RATES = settings.RATES | {"mail": "3/minute"}
    for _ in range(5):
        write("much@example.org")
    write("other@example.org")

    assert sending.send_due() == 4

    assert len(post.to("much@example.org")) == 3
    waiting = Letter.objects.filter(state=LetterState.WAITING)
    assert [(letter.attempts, letter.next_at > timezone.now()) for letter in waiting] == [(0, True)] * 2


def test_a_letter_expires_with_its_secrets(post: MailServer) -> None:
    letter = write()
    Letter.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    assert sending.sweep() == 0

    letter.refresh_from_db()
    assert (letter.state, letter.context) == (LetterState.EXPIRED, {})
    assert not retry(letter_id=letter.pk)
    Letter.objects.update(created_at=timezone.now() - sending.KEPT - timedelta(seconds=1))
    sending.sweep()
    assert not Letter.objects.exists()


def test_a_letter_that_cannot_be_made_says_why_and_holds_up_no_other(post: MailServer) -> None:
    letter, other = write(), write("bob@example.org")
    Letter.objects.filter(pk=letter.pk).update(kind="gone")  # of a version that was rolled back

    with pytest.raises(TemplateDoesNotExist):
        sending.sweep()
    assert sending.sweep() == 1

    letter.refresh_from_db()
    other.refresh_from_db()
    assert (letter.state, letter.error) == (LetterState.WAITING, "TemplateDoesNotExist: mail/gone.txt")
    assert other.state == LetterState.SENT


def test_more_than_one_task_sends_are_left_to_another(post: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers({"mail.send": sending.send_due})
    monkeypatch.setattr(current_app, "send_task", workers.send_task)
    monkeypatch.setattr(sending, "AT_ONCE", 2)
    for number in range(3):
        write(f"{number}@example.org")
    workers.queue.clear()  # the action's own tasks are lost

    assert sending.send_due() == 2
    workers.work()

    assert len(post.letters) == 3


def test_letters_of_a_user_go_with_them() -> None:
    for _ in range(3):
        write()
    assert [forget(user_id=7, limit=2) for _ in range(3)] == [2, 1, 0]
