"""An explanation agrees with the oracle about every item, names every reason, and changes nothing."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError
from django.utils import timezone

from accounts.levels import big_v, policy
from accounts.models import Level, User
from items import actions as items
from items.models import Item, Status, Visibility
from relations import actions as relations
from relations import lists
from relations.models import Tag
from relations.tags import follow_tag, unfollow_tag
from storage import keys
from storage.connections import feeds, fetch
from tests.support.timelines import read, seen, sources
from tests.support.workers import Workers
from timeline.explain import CONDITIONS, SENTENCES, Part, _reading_only, explain_home
from timeline.fold import REACH
from timeline.models import Delivery
from timeline.oracle import home_ids
from timeline.truth import Missed

pytestmark = pytest.mark.django_db(transaction=True)

Say = Callable[..., Item]


@pytest.fixture
def friend() -> User:
    return seen(username="friend")


@pytest.fixture
def reader(friend: User, workers: Workers) -> User:
    reader = seen(username="reader")
    relations.follow(follower=reader, followee=friend)
    return reader


def explained(reader: User, item: Item | int | None = None) -> dict[str, Part]:
    item_id = item.pk if isinstance(item, Item) else item
    return explain_home(User.objects.get(pk=reader.pk), item_id=item_id)


def verdict(reader: User, item: Item | int) -> tuple[list[str], str | None]:
    """Why not, and where; as the oracle says it."""
    found = explained(reader, item)["item"]
    item_id = item.pk if isinstance(item, Item) else item
    shown, *more = found.words
    assert shown == ("shown" if item_id in home_ids(reader.pk) else "not_shown"), found
    assert all(found.sentences), found
    if shown == "not_shown":
        return more, None
    (place,) = more
    return [], place


def repost(sender: User, item: Item) -> Item:
    made, _ = items.repost(sender=sender, item=item)
    return made


def hide(item: Item) -> None:
    Item.objects.filter(pk=item.pk).update(status=Status.DELETED)


# --- An item ---------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_every_reason_is_named_as_the_oracle_has_it(reader: User, friend: User, say: Say, workers: Workers) -> None:
    stranger, enemy, hater, loud, gone, listed, sharer = (
        seen(username=name) for name in ("stranger", "enemy", "hater", "loud", "gone", "listed", "sharer")
    )
    for one in (enemy, hater, loud, gone, listed):
        relations.follow(follower=reader, followee=one)
    relations.follow(follower=reader, followee=sharer, reposts=False)
    said = {one.username: say(one) for one in (friend, stranger, enemy, hater, loud, gone, listed, reader)}
    out_of_home = lists.create(owner=reader, title="out", is_exclusive=True)
    lists.add(owner=reader, list_id=out_of_home.pk, member=listed)
    User.objects.filter(pk=gone.pk).update(is_active=False)
    relations.mute(muter=reader, muted=loud)
    cases: dict[str, tuple[Item | int, set[str]]] = {
        "shown": (said["friend"], set()),
        "own": (said["reader"], set()),
        "own, for oneself": (say(reader, visibility=Visibility.SELF), set()),
        "absent": (5, {"absent"}),
        "not published": (say(friend), {"status"}),
        "reply": (say(friend, reply_to=said["friend"]), {"reply"}),
        "for oneself": (say(friend, visibility=Visibility.SELF), {"self"}),
        "for mutuals": (say(friend, visibility=Visibility.MUTUALS), {"mutuals"}),
        "followers": (say(friend, visibility=Visibility.FOLLOWERS), set()),
        "followers of a stranger": (say(stranger, visibility=Visibility.FOLLOWERS), {"not_followed"}),
        "stranger": (said["stranger"], {"not_followed"}),
        "muted": (said["loud"], {"muted"}),
        "in an exclusive list": (said["listed"], {"exclusive"}),
        "repost by one whose reposts are left out": (repost(sharer, say(sharer)), {"reposts_left_out"}),
        "inactive": (said["gone"], {"inactive"}),
        "repost of what is muted": (repost(friend, said["loud"]), {"original_muted"}),
        "repost of what is gone": (repost(friend, said["stranger"]), {"original"}),
    }
    hide(cases["not published"][0])  # type: ignore[arg-type]
    hide(said["stranger"])
    cases["stranger"][1].add("status")
    for blocker, blocked in ((reader, enemy), (hater, reader)):
        relations.block(blocker=blocker, blocked=blocked)
    for name, why in (("enemy", "blocked"), ("hater", "blocked_by")):
        cases[name] = (said[name], {why})
    for _ in range(2):  # pending, and delivered
        found = {name: set(verdict(reader, item)[0]) for name, (item, _) in cases.items()}
        assert found == {name: expected for name, (_, expected) in cases.items()}
        workers.work()
    told = {reason for _, expected in cases.values() for reason in expected}
    assert CONDITIONS.keys() | {"absent"} == told < SENTENCES.keys()


@pytest.mark.slow
def test_a_folded_repost_names_the_one_that_stands_for_it(reader: User, friend: User, say: Say) -> None:
    other = seen()
    relations.follow(follower=reader, followee=other)
    original = say(seen())
    older = repost(friend, original)
    newer = repost(other, original)
    assert verdict(reader, older)[0] == ["folded"]
    assert verdict(reader, newer)[0] == []
    assert explained(reader, older)["item"].items == [str(newer.pk)]
    assert explained(reader, newer)["item"].facts["reposts that it stands for"] == 1
    for _ in range(REACH):
        say(friend)
    assert verdict(reader, older)[0] == ["folded"]
    third = repost(reader, original)
    assert verdict(reader, newer)[0] == []
    assert verdict(reader, third)[0] == []


@pytest.mark.slow
def test_a_repost_close_above_its_original_names_the_original(reader: User, friend: User, say: Say) -> None:
    original = say(friend)
    own = repost(reader, original)
    assert verdict(reader, own)[0] == ["folded"]
    assert explained(reader, own)["item"].items == [str(original.pk)]
    assert verdict(reader, original)[0] == []


@pytest.mark.slow
def test_it_says_where_pages_find_an_item(
    reader: User, friend: User, say: Say, workers: Workers, settings: Any
) -> None:
    settings.LEVEL_CAPS = {1: 3, 2: 5, 3: 4}
    settings.WINDOW_SLACK = 0
    star = seen(username="star")
    relations.follow(follower=reader, followee=star)
    big_v.make_big_v(user=star)
    said = [say(friend) for _ in range(6)]
    assert verdict(reader, said[-1]) == ([], "pending")
    assert verdict(reader, said[0]) == ([], "pending")
    workers.work()
    assert verdict(reader, said[-1]) == ([], "sql"), "no inbox yet"
    read(reader)
    workers.work()
    assert verdict(reader, said[-1]) == ([], "inbox")
    assert verdict(reader, said[0]) == ([], "sql"), "below the floor"
    User.objects.filter(pk=reader.pk).update(level=Level.MONTHLY, push_generation=7)
    call = say(star)
    workers.work()
    assert verdict(reader, call) == ([], "outbox")
    found = explained(reader, call)
    assert found["big_vs"].words == ["merged"]
    facts = found["item"].facts
    assert (facts["in the inbox"], facts["in the outbox of its sender"]) == (False, True)
    assert facts["above the floor of the inbox"] is True


def test_an_entry_that_a_window_lost_is_told(reader: User, friend: User, say: Say, workers: Workers) -> None:
    item = say(friend)
    read(reader)
    workers.work()
    assert verdict(reader, item) == ([], "inbox")
    feeds().zrem(keys.inbox(reader.pk), f"{friend.pk}:{item.pk}")
    assert verdict(reader, item) == ([], "lost")


def test_a_delivery_that_was_given_up_is_told(reader: User, friend: User, say: Say) -> None:
    item = say(friend)
    Delivery.objects.update(parked_at=timezone.now())
    found = explained(reader, item)
    assert (found["item"].facts["fan-out pending"], found["item"].facts["given up"]) == (True, True)
    assert found["pending"].facts == {"pending": 1, "given up": 1, "there may be more": False}
    assert found["pending"].items == [str(item.pk)]


def test_a_post_by_a_hashtag_alone(reader: User, say: Say, workers: Workers, settings: Any) -> None:
    settings.OUTBOX_CAP = 3
    stranger = seen()
    follow_tag(user=reader, tag="tea")
    said = [say(stranger, "#tea") for _ in range(5)]
    item = said[-1]
    assert explained(reader, item)["item"].words == ["shown", "by_tag", "pending"]
    workers.work()
    assert explained(reader, item)["item"].words == ["shown", "by_tag", "sql"], "no inbox yet"
    for _ in range(2):
        read(reader)
        workers.work()
    found = explained(reader, item)
    assert found["item"].words == ["shown", "by_tag", "outbox"]
    assert (found["tags"].words, found["tags"].facts) == (["merged"], {"hashtags": 1})
    assert found["outbox of #tea"].words == ["in_use"]
    assert explained(reader, said[0])["item"].words == ["shown", "by_tag", "sql"], "below the floor"
    feeds().zrem(keys.tag_outbox(Tag.objects.get().pk), f"{stranger.pk}:{item.pk}")
    assert explained(reader, item)["item"].words == ["shown", "by_tag", "lost"]
    reply = say(stranger, "#tea", reply_to=item)
    assert verdict(reader, reply) == (["reply", "not_followed"], None)
    relations.mute(muter=reader, muted=stranger)
    assert verdict(reader, item) == (["muted"], None)
    unfollow_tag(user=reader, tag="tea")
    assert verdict(reader, item) == (["not_followed", "muted"], None)
    assert explained(reader)["tags"].words == ["no_tag"]


# --- The windows, and the next page ----------------------------------------------------------------------
@pytest.mark.sessions
@pytest.mark.slow
def test_every_state_of_an_inbox_and_what_serves_the_page(
    reader: User, friend: User, say: Say, workers: Workers
) -> None:
    key = keys.inbox(reader.pk)
    for _ in range(30):
        say(friend)
    workers.work()
    states = {}

    def look(name: str) -> None:
        found = explained(reader)
        (states[name],) = found["inbox"].words
        assert found["next_page"].facts["sources"] == ",".join(sources(reader))
        assert found["next_page"].facts["items of the page"] == len(read(reader))
        workers.queue.clear()

    look("missing")
    feeds().delete(key)
    read(reader)
    assert explained(reader)["inbox"].words == ["building"]
    workers.work()
    look("in_use")
    found = explained(reader)
    page, inbox = found["next_page"], found["inbox"].facts
    assert (page.facts["sources"], page.words) == ("inbox", ["windows"])
    assert (inbox["entries"], inbox["floor"], inbox["of this run of the server"]) == (30, "0", True)
    assert inbox["epoch"] == inbox["expected epoch"]
    assert inbox["bytes"] > 1_000
    assert 1 <= page.facts["statements"] <= 2
    assert page.facts["round trips to Redis"] == 1
    assert 0 < page.facts["milliseconds"] < 1_000
    scores = {member.decode(): score for member, score in feeds().zrange(key, 0, -1, withscores=True)}
    (run,) = [member for member in scores if member.startswith("run:")]
    feeds().zrem(key, run)
    look("other_run")
    feeds().delete(key)
    feeds().zadd(key, scores | {"epoch": -1})
    look("other_epoch")
    feeds().delete(key)
    feeds().zadd(key, {member: score for member, score in scores.items() if member != "floor"})
    look("no_floor")
    User.objects.filter(pk=reader.pk).update(level=Level.DORMANT)
    look("dormant")
    assert explained(reader)["next_page"].words == ["dormant"]
    User.objects.filter(pk=reader.pk).update(level=Level.DAILY)
    policy.change(inbox_from=5)
    look("few")
    policy.change(inbox_from=0)
    fetch("UPDATE accounts_policy SET drawn_on = 0 RETURNING id")
    look("no_generation")
    policy.follow_timeline()
    assert all(name == state for name, state in states.items()), states
    assert states.keys() < SENTENCES.keys()


@pytest.mark.slow
def test_without_redis_it_says_so(reader: User, friend: User, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    item = say(friend)
    monkeypatch.setattr("timeline.explain.feeds", lambda: redis.Redis(port=1))
    found = explained(reader, item)
    assert found["inbox"].words == ["redis"]
    assert (found["item"].words[0], found["item"].facts["in the inbox"]) == ("shown", None)


@pytest.mark.slow
def test_outboxes_are_told_with_their_state_and_bounded(
    reader: User, say: Say, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    stars = [seen() for _ in range(4)]
    for star in stars:
        relations.follow(follower=reader, followee=star)
        big_v.make_big_v(user=star)
        say(star)
    workers.work()
    feeds().delete(keys.outbox(stars[1].pk))
    monkeypatch.setattr("timeline.explain.SHOWN", 3)
    found = explained(reader)
    assert found["big_vs"].facts == {"big accounts": 4}
    outboxes = [part for name, part in found.items() if name.startswith("outbox of ")]
    assert [(part.title, part.words) for part in outboxes] == [
        (f"@{stars[0].username}", ["in_use"]),
        (f"@{stars[1].username}", ["missing"]),
        (f"@{stars[2].username}", ["in_use"]),
    ]
    assert outboxes[0].facts["entries"] == 1


def test_every_miss_has_a_why() -> None:
    assert set(Missed) < SENTENCES.keys()


# --- It changes nothing ----------------------------------------------------------------------------------
@pytest.mark.slow
def test_explaining_changes_nothing(reader: User, friend: User, say: Say, workers: Workers) -> None:
    """Of PostgreSQL, of Redis with the life of its keys, of the queue; where a page would forget and build."""
    star = seen()
    relations.follow(follower=reader, followee=star)
    big_v.make_big_v(user=star)
    said = [say(friend) for _ in range(5)]
    workers.work()
    read(reader)
    workers.work()
    hide(said[2])
    say(friend)
    feeds().delete(keys.outbox(star.pk))
    User.objects.filter(pk=reader.pk).update(
        level=Level.MONTHLY, push_generation=9, last_seen_at=timezone.now() - timedelta(days=9)
    )
    for key in feeds().keys("*"):
        feeds().expire(key, 1_000)
    workers.queue.clear()

    def state() -> Any:
        tables = ("accounts_user", "timeline_delivery", "items_item", "relations_follow")
        rows = [fetch(f"SELECT t::text FROM {table} t ORDER BY 1") for table in tables]  # noqa: S608 (constants)
        held = {key: feeds().dump(key) for key in feeds().keys("*")}
        return rows, held, [feeds().ttl(key) > 1_000 for key in sorted(held)], list(workers.queue)

    before = state()
    explained(reader, said[2])
    assert state() == before
    call_command("explain_home", "reader", "--json")
    assert state() == before
    read(reader)
    assert state() != before, "a page does"


def test_postgresql_refuses_to_write_meanwhile(reader: User) -> None:
    with pytest.raises(DatabaseError), _reading_only():
        fetch("UPDATE accounts_user SET level = 0 RETURNING id")
    assert User.objects.get(pk=reader.pk).level == Level.DAILY


# --- The command -----------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_command_tells_it_to_people_and_programs(
    reader: User, friend: User, say: Say, workers: Workers, capsys: pytest.CaptureFixture[str]
) -> None:
    item = say(friend)
    read(reader)
    workers.work()
    relations.mute(muter=reader, muted=friend)
    call_command("explain_home", "@READER", item=str(item.pk))
    told = capsys.readouterr().out
    assert told.startswith(f"Item {item.pk}: The reader does not see it at home. The reader mutes its sender.\n")
    assert "  sender: @friend\n  status: published\n  visibility: public\n" in told
    assert "\nThe next page: The windows serve the whole page.\n  sources: inbox\n" in told
    assert "\nThe reader\n  level: 3\n" in told
    outboxes = "\nOutboxes of the big accounts that the reader follows: The reader follows no big account.\n"
    assert f"{outboxes}  big accounts: 0\n" in told
    call_command("explain_home", "reader", "--json", item=str(item.pk))
    body = json.loads(capsys.readouterr().out)
    assert body["item"]["words"] == ["not_shown", "muted"]
    assert body["reader"]["facts"]["level"] == 3
    assert body["inbox"]["words"] == ["in_use"]


@pytest.mark.slow
def test_the_command_says_why_outboxes_are_not_merged(
    reader: User, workers: Workers, capsys: pytest.CaptureFixture[str]
) -> None:
    star = seen(username="star")
    relations.follow(follower=reader, followee=star)
    big_v.make_big_v(user=star)

    def told() -> str:
        call_command("explain_home", "reader")
        return capsys.readouterr().out

    assert "follows: Pages do not merge these outboxes: no inbox is in use" in told()
    read(reader)
    workers.work()
    assert "follows: Pages do not merge these outboxes: their posts are pushed" in told()
    User.objects.filter(pk=reader.pk).update(level=Level.MONTHLY, push_generation=7)
    assert "follows: Pages merge these outboxes with the inbox." in told()


@pytest.mark.parametrize(
    ("user", "item"), [("absent", None), ("reader", "abc"), ("reader", "-1"), ("reader", "9" * 40)]
)
def test_errors_are_one_line(reader: User, user: str, item: str | None) -> None:
    with pytest.raises(CommandError, match=r"There is no user absent|is not an item's id"):
        call_command("explain_home", user, item=item)
