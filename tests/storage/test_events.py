import threading
from typing import Any

import pytest
import redis

from runtime.embedded import wait_for
from storage import events, keys
from storage.connections import feeds_breaker
from storage.events import (
    Edited,
    Event,
    Gap,
    Notified,
    Position,
    Published,
    SessionChanged,
    Withdrawn,
    announce,
    event_of,
)
from tests.support.patience import waits_once_a_second
from tests.support.servers import Valkey, dead, frozen


def appended(feeds: redis.Redis) -> list[Event | None]:
    entries: Any = feeds.xrange(keys.events())
    return [event_of(fields) for _, fields in entries]


def test_events_are_read_as_they_were_written(feeds: redis.Redis) -> None:
    written = [
        Published(2**53 - 1),
        Edited(7, "followers"),
        Withdrawn(8, "public"),
        SessionChanged(9, was_hidden=True),
        Gap(),
        Notified(3, {"unread": 4, "text": "中文"}),
    ]
    announce(*written)
    assert appended(feeds) == written


@pytest.mark.parametrize("fields", [{}, {b"event": b"{"}, {b"event": b'{"type":"later"}'}, [b"event"]])
def test_what_another_version_wrote_is_passed_over(fields: Any) -> None:
    assert event_of(fields) is None


def test_the_stream_is_capped(feeds: redis.Redis) -> None:
    for _ in range(25):
        announce(*[Published(1)] * 500)
    assert events.LENGTH <= feeds.xlen(keys.events()) < events.LENGTH + 500


def test_a_key_of_another_type_fails_nobody(feeds: redis.Redis, caplog: pytest.LogCaptureFixture) -> None:
    feeds.set(keys.events(), "words")
    announce(Published(1))
    assert "refused an event" in caplog.text


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_not_waited_for(feeds_server: Valkey) -> None:
    with frozen(feeds_server), waits_once_a_second():
        for _ in range(10):
            announce(Published(1))
    feeds_breaker.reset()
    with dead(feeds_server):
        announce(Published(1))


@pytest.mark.slow
def test_what_was_lost_is_told_of_when_the_server_answers_again(feeds_server: Valkey, feeds: redis.Redis) -> None:
    """It is reported once, so that open pages reload."""
    with frozen(feeds_server):
        announce(Published(1))
        announce(Published(2))
    assert wait_for(lambda: Gap() in appended(feeds), 60)
    assert wait_for(lambda: all(thread.name != "gaps" for thread in threading.enumerate()), 60)
    assert appended(feeds).count(Gap()) == 1


def test_positions() -> None:
    assert Position.parse("12-3") == Position.parse(b"12-3") == Position(12, 3)
    assert str(Position(12, 3)) == "12-3"
    assert Position(2, 10) > Position(2, 9) > Position(1, 999)
    for text in ("", "1", "1-", "-1", "a-1", "1-2-3", "٣-1", "1-" + "9" * 21, "1_0-1", " 1-1"):
        with pytest.raises(ValueError, match="not the id"):
            Position.parse(text)
