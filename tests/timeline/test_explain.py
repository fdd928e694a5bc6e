from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
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
from timeline.explain import CONDITIONS, SENTENCES, ExplanationPart, explain_home
from timeline.fold import REACH
from timeline.models import Delivery
from timeline.oracle import home_ids

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


def explained(reader: User, item: Item | int | None = None) -> dict[str, ExplanationPart]:
    item_id = item.pk if isinstance(item, Item) else item
    return explain_home(User.objects.get(pk=reader.pk), item_id=item_id)


def verdict(reader: User, item: Item | int) -> list[str]:
    """The oracle must agree."""
    found = explained(reader, item)["item"]
    item_id = item.pk if isinstance(item, Item) else item
    shown, *why = found.words
    assert shown == ("shown" if item_id in home_ids(reader.pk) else "not_shown"), found
    assert all(found.sentences), found
    return why if shown == "not_shown" else []


def place(reader: User, item: Item) -> str:
    """What serves a visible item."""
    found = explained(reader, item)["item"]
    assert found.words[0] == "shown", found
    return str(found.facts["sources"])


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
        "for those who are mentioned": (say(friend, "@reader", visibility=Visibility.MENTIONED), {"mentioned"}),
        "followers": (say(friend, visibility=Visibility.FOLLOWERS), set()),
        "followers of a stranger": (say(stranger, visibility=Visibility.FOLLOWERS), {"not_followed"}),
        "stranger": (said["stranger"], {"not_followed"}),
        "muted": (said["loud"], {"muted"}),
        "in an exclusive list": (said["listed"], {"exclusive"}),
        "repost by one whose reposts are left out": (repost(sharer, say(sharer)), {"reposts_left_out"}),
        "inactive": (said["gone"], {"inactive"}),
        "repost of what is muted": (repost(friend, said["loud"]), {"original"}),
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
        found = {name: set(verdict(reader, item)) for name, (item, _) in cases.items()}
        assert found == {name: expected for name, (_, expected) in cases.items()}
        workers.work()
    told = {reason for _, expected in cases.values() for reason in expected}
    assert CONDITIONS.keys() | {"absent"} == told < SENTENCES.keys()


@pytest.mark.slow
def test_a_folded_repost_is_told(reader: User, friend: User, say: Say) -> None:
    other = seen()
    relations.follow(follower=reader, followee=other)
    original = say(seen())
    older = repost(friend, original)
    newer = repost(other, original)
    assert verdict(reader, older) == ["folded"]
    assert verdict(reader, newer) == []
    for _ in range(REACH):
        say(friend)
    assert verdict(reader, older) == ["folded"]
    third = repost(reader, original)
    assert verdict(reader, newer) == []
    assert verdict(reader, third) == []


@pytest.mark.slow
def test_a_repost_close_above_its_original_is_folded(reader: User, friend: User, say: Say) -> None:
    original = say(friend)
    own = repost(reader, original)
    assert verdict(reader, own) == ["folded"]
    assert verdict(reader, original) == []


@pytest.mark.slow
def test_it_says_what_serves_an_item(reader: User, friend: User, say: Say, workers: Workers, settings: Any) -> None:
    settings.LEVEL_CAPS = {1: 3, 2: 5, 3: 4}
    settings.WINDOW_SLACK = 0
    star = seen(username="star")
    relations.follow(follower=reader, followee=star)
    big_v.make_big_v(user=star)
    said = [say(friend) for _ in range(6)]
    workers.work()
    assert place(reader, said[-1]) == "sql", "no inbox yet"
    read(reader)
    workers.work()
    assert place(reader, said[-1]) == "inbox"
    assert place(reader, said[0]) == "sql", "below the floor"
    assert explained(reader, said[0])["item"].words == ["shown", "floor"]
    assert place(reader, say(friend)) == "inbox,pending"
    User.objects.filter(pk=reader.pk).update(level=Level.MONTHLY, push_generation=7)
    call = say(star)
    workers.work()
    read(reader)
    workers.work()
    assert place(reader, call) == "inbox,outbox"
    facts = explained(reader)["reader"].facts
    assert (facts["outboxes that pages merge"], facts["windows to be built"]) == (1, 0)
    feeds().delete(keys.outbox(star.pk))
    assert place(reader, call) == "sql"
    assert explained(reader)["reader"].facts["windows to be built"] == 1


def test_an_entry_that_a_window_lost_is_told(reader: User, friend: User, say: Say, workers: Workers) -> None:
    item = say(friend)
    read(reader)
    workers.work()
    assert place(reader, item) == "inbox"
    feeds().zrem(keys.inbox(reader.pk), f"{friend.pk}:{item.pk}")
    assert explained(reader, item)["item"].words == ["not_shown", "lost"]


def test_a_delivery_that_was_given_up_is_told(reader: User, friend: User, say: Say) -> None:
    item = say(friend)
    Delivery.objects.update(parked_at=timezone.now())
    facts = explained(reader, item)["item"].facts
    assert (facts["delivery pending"], facts["given up"]) == (True, True)


def test_a_post_by_a_hashtag_alone(reader: User, say: Say, workers: Workers) -> None:
    stranger = seen()
    follow_tag(user=reader, tag="tea")
    item = say(stranger, "#tea")
    workers.work()
    assert place(reader, item) == "sql", "no inbox yet"
    for _ in range(2):
        read(reader)
        workers.work()
    assert place(reader, item) == "inbox,outbox"
    assert explained(reader, item)["item"].facts["reason"] == "#tea"
    feeds().zrem(keys.tag_outbox(Tag.objects.get().pk), f"{stranger.pk}:{item.pk}")
    assert explained(reader, item)["item"].words == ["not_shown", "lost"]
    reply = say(stranger, "#tea", reply_to=item)
    assert verdict(reader, reply) == ["reply", "not_followed"]
    relations.mute(muter=reader, muted=stranger)
    assert verdict(reader, item) == ["muted"]
    unfollow_tag(user=reader, tag="tea")
    assert verdict(reader, item) == ["not_followed", "muted"]


# --- The next page ---------------------------------------------------------------------------------------
@pytest.mark.sessions
@pytest.mark.slow
def test_it_says_what_serves_the_next_page(reader: User, friend: User, say: Say, workers: Workers) -> None:
    for _ in range(30):
        say(friend)
    workers.work()

    def why() -> str:
        page = explained(reader)["next_page"]
        assert page.facts["sources"] == ",".join(sources(reader))
        assert page.facts["posts on the page"] == len(read(reader))
        (word,) = page.words
        return word

    assert why() == "missing"
    workers.work()
    assert why() == "windows"
    facts = explained(reader)["next_page"].facts
    assert 1 <= facts["statements"] <= 2
    assert facts["round trips to Redis"] == 1
    assert 0 < facts["milliseconds"] < 1_000
    User.objects.filter(pk=reader.pk).update(level=Level.DORMANT)
    assert why() == "dormant"
    User.objects.filter(pk=reader.pk).update(level=Level.DAILY)
    policy.change(inbox_from=5)
    assert why() == "few"
    policy.change(inbox_from=0)


# --- It changes nothing ----------------------------------------------------------------------------------
@pytest.mark.slow
def test_explaining_changes_nothing(reader: User, friend: User, say: Say, workers: Workers) -> None:
    """Where a page would forget and build."""
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
        rows = [fetch(f"SELECT t::text FROM {table} t ORDER BY 1") for table in tables]
        held = {key: feeds().dump(key) for key in feeds().keys("*")}
        return rows, held, [feeds().ttl(key) > 1_000 for key in sorted(held)], list(workers.queue)

    before = state()
    explained(reader, said[2])
    assert state() == before
    explained(reader, said[0])
    assert state() == before
    read(reader)
    assert state() != before, "a page does"


# --- The command -----------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_command_tells_it_to_people(
    reader: User, friend: User, say: Say, workers: Workers, capsys: pytest.CaptureFixture[str]
) -> None:
    item = say(friend)
    read(reader)
    workers.work()
    relations.mute(muter=reader, muted=friend)
    call_command("explain_home", "@READER", item=str(item.pk))
    told = capsys.readouterr().out
    assert told.startswith(f"Post {item.pk}: The reader doesn't see it at home. The reader mutes its author.\n")
    assert "  author: @friend\n  delivery pending: False\n" in told
    assert "\nThe next page: The windows serve the whole page.\n  sources: inbox\n" in told
    assert "\nThe reader\n  active: True\n  level: 3\n" in told


@pytest.mark.parametrize(
    ("user", "item"), [("absent", None), ("reader", "abc"), ("reader", "-1"), ("reader", "9" * 40)]
)
def test_errors_are_one_line(reader: User, user: str, item: str | None) -> None:
    with pytest.raises(CommandError, match=r"There is no user absent|is not an item's id"):
        call_command("explain_home", user, item=item)
