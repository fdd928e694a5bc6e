"""Work with retries of its own: its age is measured, told and alerted by one table (storage.queue.WORK)."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone

from accounts.mail import sending
from accounts.mail.actions import send
from accounts.mail.models import Letter, LetterState
from accounts.models import Deletion, Recount, ResetRequest
from community.archives.models import ArchiveImport
from items.models import CardState, LinkCard, Poll, ScheduledPost
from live.models import LiveSession, ReplayDelivery
from notifications.models import Ringing
from operation import gauges
from operation.doctor import work
from operation.doctor.findings import OK, WARNING, Finding
from relations.models import CsvImport, Mute
from runtime import metrics
from storage import keys
from storage.queue import QUESTIONS, WORK
from tests.support.factories import ItemFactory, UserFactory
from tests.support.mail_servers import MailServer, closed_port, post

__all__ = ["post"]

pytestmark = pytest.mark.django_db

LATE = timedelta(minutes=22)


def findings() -> dict[str, Finding]:
    return {finding.name: finding for finding in work.waiting_work()}


# --- A dead mail server ------------------------------------------------------------------------------------
def written(age: timedelta) -> Letter:
    cache.delete_many([keys.mail_pause(), keys.mail_turn()])
    send(kind="test", to="ann@example.org", language="en", context={"name": "ann"})
    letter = Letter.objects.latest("pk")
    Letter.objects.filter(pk=letter.pk).update(created_at=timezone.now() - age)
    return letter


@pytest.mark.parametrize(
    ("mode", "answer"), [("dead", "ConnectionRefusedError"), ("busy", "451"), ("suspicious", "looks like spam")]
)
def test_a_letter_that_was_tried_waits_since_it_was_written(
    post: MailServer, settings: Any, mode: str, answer: str
) -> None:
    assert gauges.oldest_waits()["letters"] == 0
    post.mode = mode
    if mode == "dead":
        settings.EMAIL_PORT = closed_port()
    young = written(timedelta(seconds=5))
    assert findings()["letters"].state == OK, "nobody has tried it"
    sending.send_due()
    assert findings()["letters"].state == WARNING, "the server refuses it, and that is no matter of minutes"
    young.delete()
    letter = written(LATE)
    assert gauges.oldest_waits()["letters"] < 60, "nobody has tried it"
    assert sending.send_due() == 0
    letter.refresh_from_db()
    assert letter.next_at > timezone.now(), "the try has moved this"
    assert gauges.oldest_waits()["letters"] == pytest.approx(LATE.total_seconds(), abs=30)
    finding = findings()["letters"]
    assert finding.state == WARNING
    assert answer in finding.text
    assert "sendtestemail" in finding.todo
    gauges.observe(now=timezone.now())
    shown = {labels["work"]: value for name, labels, value in metrics.samples() if name == "feedsite_waiting_seconds"}
    assert shown["letters"] > 600
    assert shown["pushes"] == 0


def test_a_letter_that_alone_is_refused_is_no_dead_server(post: MailServer) -> None:
    post.mode = "busy"
    refused = written(LATE)
    sending.send_due()
    assert findings()["letters"].state == WARNING
    post.mode = ""
    written(timedelta(0))
    assert sending.send_due() == 1
    assert findings()["letters"].state == OK
    Letter.objects.filter(pk=refused.pk).update(next_at=timezone.now() - LATE)
    assert findings()["letters"].state == WARNING, "it is due, and nobody tries it"


def test_letters_that_expire_after_a_failure_are_counted(post: MailServer, settings: Any) -> None:
    settings.EMAIL_PORT = closed_port()
    letter = written(timedelta(hours=4))
    sending.send_due()
    never_tried = written(timedelta(hours=4))
    assert not sending.unsent().exists()
    Letter.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    sending.sweep()
    assert set(Letter.objects.values_list("state", flat=True)) == {LetterState.EXPIRED}
    assert [each.pk for each in sending.unsent()] == [letter.pk]
    assert never_tried.pk != letter.pk
    (finding,) = work.letters()
    assert (finding.state, finding.text) == (WARNING, "1")
    Letter.objects.update(created_at=timezone.now() - timedelta(days=2))
    assert next(work.letters()).state == OK


# --- Its kin -----------------------------------------------------------------------------------------------
def _live(at: datetime) -> None:
    LiveSession.objects.create(
        host=UserFactory(), title="x", state="live", starts_at=at, started_at=at, reminders_due=True
    )


LATE_ROWS: dict[str, Callable[[datetime], Any]] = {
    "timed mutes": lambda at: Mute.objects.create(muter=UserFactory(), muted=UserFactory(), expires_at=at),
    "imports of lists": lambda at: CsvImport.objects.create(user=UserFactory(), kind="mutes", total=1, created_at=at),
    "imports of archives": lambda at: ArchiveImport.objects.create(user=UserFactory(), folder="x", created_at=at),
    "deletions of accounts": lambda at: Deletion.objects.create(
        user=UserFactory(), created_at=at, tried_at=timezone.now(), attempts=6
    ),
    "counts of suspended accounts": lambda at: Recount.objects.create(user_id=1, created_at=at),
    "password resets": lambda at: ResetRequest.objects.create(asked="ann", created_at=at),
    "ends of polls": lambda at: Poll.objects.create(item=ItemFactory(), closes_at=at, votes=[0, 0]),
    "link previews": lambda at: LinkCard.objects.create(url="https://a.example", state=CardState.WAITING, asked_at=at),
    "scheduled posts": lambda at: ScheduledPost.objects.create(sender=UserFactory(), post={}, publish_at=at, key="x"),
    "reminders of live sessions": _live,
    "bells": lambda at: Ringing.objects.create(item=ItemFactory(), created_at=at),
}


@pytest.mark.parametrize("name", LATE_ROWS)
def test_work_that_is_late(name: str) -> None:
    assert {finding.state for finding in findings().values()} == {OK}
    LATE_ROWS[name](timezone.now() - LATE)
    (wrong,) = [finding for finding in findings().values() if finding.state != OK]
    assert (wrong.name, wrong.text[:24]) == (name, "the oldest waits for 0:2")


def test_work_that_makes_progress_is_not_late() -> None:
    now, long_ago = timezone.now(), timezone.now() - timedelta(hours=5)
    ArchiveImport.objects.create(user=UserFactory(), folder="x", created_at=long_ago, tried_at=now)
    CsvImport.objects.create(user=UserFactory(), kind="mutes", total=1, created_at=long_ago, tried_at=now)
    Deletion.objects.create(user=UserFactory(), created_at=long_ago, tried_at=now, attempts=1)
    assert {finding.state for finding in findings().values()} == {OK}


def test_a_replay_that_waits_is_a_delivery_that_waits() -> None:
    host, now = UserFactory(), timezone.now()
    times = {"starts_at": now, "started_at": now, "ended_at": now}
    session = LiveSession.objects.create(host=host, title="x", state="replay", position=1, **times)
    ReplayDelivery.objects.create(session=session, host=host, position=1, created_at=now - LATE)
    assert [finding.state for finding in work.deliveries(now)] == [WARNING, OK]
    ReplayDelivery.objects.update(parked_at=now)
    assert [finding.state for finding in work.deliveries(now)] == [OK, WARNING]


def test_every_question_about_rows_that_wait_says_since_when() -> None:
    """The others have gauges of their own, or rows without a time that are folded every few seconds, or have
    waited since long before.
    """
    gauges.oldest_waits()
    others = {
        "accounts.follow_timeline",
        "items.fold_counts",
        "live.run",
        "media.make_sizes",
        "relations.fold_follower_counts",
        "timeline.sweep",
    }
    assert {task for task, query in QUESTIONS.items() if query not in WORK.values()} == others
