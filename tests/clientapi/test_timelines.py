"""Timelines by Mastodon's cursors, in both directions, must equal the oracle."""

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from accounts.models import User
from items import actions as items
from items import listing
from items.likes import saved
from items.models import Item, Visibility
from items.profiles.pins import pin
from items.text import hashtags
from relations import actions as relations
from relations import lists, people
from tests.support.clients import Caller
from tests.support.effort import some, tries
from tests.support.factories import ItemFactory, UserFactory
from tests.support.picture_posts import posted, sent
from timeline import above
from timeline.oracle import home_ids, list_ids

pytestmark = pytest.mark.django_db

LINK = re.compile(r'<([^>]+)>; rel="(next|prev)"')
PATIENCE = 400
"""Most pages of a walk."""


def links(caller: Caller) -> dict[str, str]:
    found = {name: address for address, name in LINK.findall(caller.response.headers.get("Link", ""))}
    return {name: address.partition("/api/")[2] for name, address in found.items()}


def down(caller: Caller, path: str) -> list[int]:
    """All entries downwards, by the Link `next`, which is first."""
    found: list[int] = []
    for _ in range(PATIENCE):
        found += [int(one["id"]) for one in caller.get(path)]
        header = caller.response.headers.get("Link", "")
        assert (
            header.find('rel="next"') < header.find('rel="prev"') or 'rel="next"' not in header or "prev" not in header
        )
        if "next" not in links(caller):
            return found
        path = links(caller)["next"]
    raise AssertionError("the walk does not end")


def up(caller: Caller, path: str, begin: int) -> list[int]:
    """All entries up from an id, newest first, by the Link `prev`."""
    found: list[int] = []
    path = f"{path}&min_id={begin}"
    for _ in range(PATIENCE):
        page, asked = [int(one["id"]) for one in caller.get(path)], path
        found, path = page + found, links(caller)["prev"]
        if not page and _above(asked) == _above(path):
            return found
    raise AssertionError("the walk does not end")


def _above(path: str) -> str:
    return re.findall(r"min_id=(\d+)", path)[-1]


def crowd(reader: User, chance: random.Random, said: int) -> list[User]:
    """Followed, muted, blocked and unknown people."""
    people = [UserFactory() for _ in range(5)]
    for one in people[:4]:
        relations.follow(follower=reader, followee=one)
    every: list[Item] = []
    for _ in range(said):
        sender = chance.choice([*people, reader])
        if every and chance.random() < 0.5:
            items.repost(sender=sender, item=chance.choice(every[-8:]))
        else:
            visibility = chance.choice([Visibility.PUBLIC] * 3 + [Visibility.FOLLOWERS, Visibility.SELF])
            every.append(items.publish(sender=sender, content={"text": "words #tag"}, visibility=visibility))
    for item in chance.sample(every, min(len(every), 3)):
        items.delete(item=item)
    relations.mute(muter=reader, muted=people[3])
    return people


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(tries(1, 40)))
def test_home_is_the_oracles_both_ways(seed: int, reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)  # noqa: S311 (a made-up world)
    monkeypatch.setattr(above, "SCAN", chance.choice([1, 3, 10, 60]))
    crowd(reader, chance, 60)
    caller, limit = Caller(reader), chance.choice([1, 3, 7, 40])
    every = home_ids(reader.pk)
    path = f"v1/timelines/home?limit={limit}"
    assert down(caller, path) == every
    for begin in [1, *chance.sample(every, 3), every[0] + 1]:
        assert up(caller, path, begin) == [one for one in every if one > begin]
        since = [int(one["id"]) for one in caller.get(f"{path}&since_id={begin}")]
        assert since == [one for one in every if one > begin][:limit]
        below = [int(one["id"]) for one in caller.get(f"{path}&max_id={begin}")]
        assert below == [one for one in every if one < begin][:limit]


def test_a_page_upward_is_the_one_directly_above(reader: User) -> None:
    said = [items.publish(sender=reader, content={"text": "x"}).pk for _ in range(30)]
    caller = Caller(reader)
    assert [int(one["id"]) for one in caller.get(f"v1/timelines/home?limit=5&min_id={said[3]}")] == said[4:9][::-1]
    assert "min_id" in links(caller)["prev"]
    both = caller.get(f"v1/timelines/home?limit=5&min_id={said[3]}&max_id={said[7]}")
    assert [int(one["id"]) for one in both] == said[4:7][::-1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(tries(1, 20)))
def test_a_list_is_the_oracles_both_ways(seed: int, reader: User) -> None:
    chance = random.Random(seed)  # noqa: S311 (a made-up world)
    people = crowd(reader, chance, 40)
    made = lists.create(owner=reader, title="some")
    for one in people[:2]:
        lists.add(owner=reader, list_id=made.pk, member=one)
    caller, every = Caller(reader), list_ids(reader.pk, made.pk)
    path = f"v1/timelines/list/{made.pk}?limit=3"
    assert down(caller, path) == every
    assert up(caller, path, 1) == every
    Caller(people[0]).get(f"v1/timelines/list/{made.pk}", status=404)


OTHERS: dict[str, Callable[[User], str]] = {
    "public": lambda user: "v1/timelines/public?limit=3",
    "tag": lambda user: "v1/timelines/tag/TAG?limit=3",
    "account": lambda user: f"v1/accounts/{user.pk}/statuses?limit=3",
    "account without replies": lambda user: f"v1/accounts/{user.pk}/statuses?limit=3&exclude_replies=1",
    "account without reposts": lambda user: f"v1/accounts/{user.pk}/statuses?limit=3&exclude_reblogs=true",
    "account with pictures": lambda user: f"v1/accounts/{user.pk}/statuses?limit=3&only_media=true",
    "account by tag": lambda user: f"v1/accounts/{user.pk}/statuses?limit=3&tagged=tag",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_other_timelines_are_the_same_both_ways(name: str, reader: User, media_folder: Path) -> None:
    chance = random.Random(name)  # noqa: S311 (a made-up world)
    people = crowd(reader, chance, 40)
    thread = items.publish(sender=reader, content={"text": "a thread"})
    for _ in range(5):
        items.publish(sender=people[0], content={"text": "an answer #tag"}, reply_to=thread)
        posted(people[0], sent(people[0]))
    caller, path = Caller(reader), OTHERS[name](people[0])
    found = down(caller, path)
    assert found == sorted(set(found), reverse=True)
    assert len(found) >= 5
    rows = {row.pk: row for row in Item.objects.visible_to(reader)}
    assert set(found) <= set(rows)
    kinds: dict[str, Callable[[Item], bool]] = {
        "public": lambda item: item.visibility == "public" and not item.reply_to_id and not item.repost_of_id,
        "tag": lambda item: "#tag" in item.text,
        "account": lambda item: item.sender_id == people[0].pk,
        "account without replies": lambda item: item.sender_id == people[0].pk and not item.reply_to_id,
        "account without reposts": lambda item: item.sender_id == people[0].pk and not item.repost_of_id,
        "account with pictures": lambda item: item.sender_id == people[0].pk and bool(item.media),
        "account by tag": lambda item: item.sender_id == people[0].pk and "#tag" in item.text,
    }
    assert set(found) == {row.pk for row in rows.values() if row.status == "published" and kinds[name](row)}
    assert up(caller, path, 1) == found
    for begin in chance.sample(found, min(len(found), 3)):
        assert up(caller, path, begin) == [one for one in found if one > begin]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(tries(1, 40)))
def test_several_hashtags_at_once(seed: int, reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """`any[]` adds hashtags, `all[]` requires each, `none[]` excludes. Both directions, short and long scans."""
    chance = random.Random(seed)  # noqa: S311 (a made-up world)
    senders, words = [UserFactory(), UserFactory(), reader], ["one", "two", "three", "four"]
    relations.follow(follower=reader, followee=senders[0])
    for _ in range(40):
        text = " ".join(f"#{word}" for word in words if chance.random() < 0.4) or "none"
        visibility = chance.choice([Visibility.PUBLIC] * 2 + [Visibility.FOLLOWERS, Visibility.SELF])
        items.publish(sender=chance.choice(senders), content={"text": text}, visibility=visibility)
    seen = {row.pk: set(hashtags(row.text)) for row in Item.objects.visible_to(reader)}
    caller = Caller(reader)
    for scan in (1, 3, 500):
        monkeypatch.setattr(listing, "SCAN", scan)
        for _ in range(3):
            asked = {name: set(chance.sample(words, chance.randrange(3))) for name in ("any", "all", "none")}
            path = "v1/timelines/tag/one?limit=3" + "".join(f"&{name}[]={tag}" for name in asked for tag in asked[name])
            expected = [
                item_id
                for item_id, held in sorted(seen.items(), reverse=True)
                if held & ({"one"} | asked["any"]) and asked["all"] <= held and not asked["none"] & held
            ]
            assert down(caller, path) == expected, asked
            for begin in [1, *chance.sample(sorted(seen), 2)]:
                assert up(caller, path, begin) == [one for one in expected if one > begin], asked


def test_links_of_a_chinese_hashtag_can_be_followed() -> None:
    caller = Caller(UserFactory())
    published = [int(caller.post("v1/statuses", {"status": f"#中文 {n}"})["id"]) for n in range(3)]
    path = f"v1/timelines/tag/{quote('中文')}?limit=1"
    assert down(caller, path) == published[::-1]
    assert up(caller, path, published[0]) == [published[2], published[1]]


def places(caller: Caller, path: str, entries: list[int]) -> dict[int, int]:
    """Each entry's cursor, from pages of one entry."""
    found = {}
    for entry in entries:
        assert [int(one["id"]) for one in caller.get(path)] == [entry]
        found[entry] = int(re.findall(r"min_id=(\d+)", caller.response.headers["Link"])[0])
        path = links(caller).get("next", "")
    return found


def walks(caller: Caller, path: str, expected: list[int], chance: random.Random) -> None:
    """Walks down, and up from any entry, agree. `since_id` cuts the list."""
    assert down(caller, f"{path}?limit=3") == expected
    assert up(caller, f"{path}?limit=3", 1) == expected
    at = places(caller, f"{path}?limit=1", expected)
    for begin in chance.sample(expected, min(len(expected), 3)):
        newer = expected[: expected.index(begin)]
        assert up(caller, f"{path}?limit=2", at[begin]) == newer
        assert down(caller, f"{path}?limit=40&since_id={at[begin]}") == newer
        assert [int(one["id"]) for one in caller.get(f"{path}?limit=2&min_id={at[begin]}")] == newer[-2:]


@pytest.mark.slow
@pytest.mark.parametrize("scan", [1, 2, 500])
def test_kept_lists_are_the_same_both_ways(scan: int, reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "SCAN", scan)
    chance, said = random.Random(scan), [ItemFactory() for _ in range(11)]  # noqa: S311 (a made-up world)
    chance.shuffle(said)
    for item in [ItemFactory(), *said]:  # `min_id` cannot name a place below the first id
        items.like(user=reader, item=item)
        items.bookmark(user=reader, item=item)
    first = Item.objects.exclude(pk__in=[item.pk for item in said]).get()
    items.unlike(user=reader, item=first)
    items.remove_bookmark(user=reader, item=first)
    gone = chance.sample(said, 3)
    for item in gone:
        items.delete(item=item)
    expected = [item.pk for item in said if item not in gone][::-1]
    if scan == 500:
        for path in ("v1/favourites", "v1/bookmarks"):
            walks(Caller(reader), path, expected, chance)
    else:
        for path in ("v1/favourites?limit=3", "v1/bookmarks?limit=3"):
            assert down(Caller(reader), path) == up(Caller(reader), path, 1) == expected


PEOPLE: dict[str, Callable[[User, User, Item], object]] = {
    "accounts/READER/followers": lambda reader, one, item: relations.follow(follower=one, followee=reader),
    "accounts/READER/following": lambda reader, one, item: relations.follow(follower=reader, followee=one),
    "blocks": lambda reader, one, item: relations.block(blocker=reader, blocked=one),
    "mutes": lambda reader, one, item: relations.mute(muter=reader, muted=one),
    "follow_requests": lambda reader, one, item: relations.follow(follower=one, followee=reader),
    "statuses/ITEM/favourited_by": lambda reader, one, item: items.like(user=one, item=item),
    "statuses/ITEM/reblogged_by": lambda reader, one, item: items.repost(sender=one, item=item),
}


@pytest.mark.slow
@pytest.mark.parametrize("scan", some(1, [2, 1, 500]))
@pytest.mark.parametrize("name", PEOPLE)
def test_people_are_the_same_both_ways(name: str, scan: int, reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "SCAN", scan)
    chance, item = random.Random(name), ItemFactory(sender=reader)  # noqa: S311 (a made-up world)
    User.objects.filter(pk=reader.pk).update(is_locked=name == "follow_requests")
    reader.refresh_from_db()
    others = [UserFactory() for _ in range(11)]
    if "reblogged" not in name:  # reposters are ordered by id
        chance.shuffle(others)
    for one in [UserFactory(is_active=False), *others]:  # `min_id` cannot name a place below the first id
        PEOPLE[name](reader, one, item)
    gone = chance.sample(others, 3)
    User.objects.filter(pk__in=[one.pk for one in gone]).update(is_active=False)
    expected = [one.pk for one in others if one not in gone][::-1]
    path = "v1/" + name.replace("READER", str(reader.pk)).replace("ITEM", str(item.pk))
    if scan == 500:
        walks(Caller(reader), path, expected, chance)
    else:
        assert down(Caller(reader), f"{path}?limit=3") == up(Caller(reader), f"{path}?limit=3", 1) == expected


@pytest.mark.parametrize("limit", [1, 2, 5, 40])
def test_pins_are_the_same_both_ways(limit: int, reader: User) -> None:
    sender = UserFactory()
    said = [items.publish(sender=sender, content={"text": "x"}) for _ in range(7)]
    for place in (3, 0, 6, 2, 5):
        pin(item=said[place])
    expected = [said[place].pk for place in (5, 2, 6, 0, 3)]
    caller, path = Caller(reader), f"v1/accounts/{sender.pk}/statuses?pinned=true&limit={limit}"
    assert down(caller, path) == expected
    assert up(caller, path, 0) == expected
    for place, one in enumerate(expected):
        assert [int(each["id"]) for each in caller.get(f"{path}&max_id={one}")] == expected[place + 1 :][:limit]
        assert [int(each["id"]) for each in caller.get(f"{path}&since_id={one}")] == expected[:place][:limit]
        assert [int(each["id"]) for each in caller.get(f"{path}&min_id={one}")] == expected[:place][-limit:]
    assert caller.get(f"{path}&max_id={said[0].pk - 1}") == caller.get(f"{path}&since_id={said[6].pk + 1}") == []


NEWEST: dict[str, Callable[[User], str]] = OTHERS | {
    "home": lambda user: "v1/timelines/home?limit=3",
    "notifications": lambda user: "v1/notifications?limit=3",
    "favourites": lambda user: "v1/favourites?limit=3",
    "bookmarks": lambda user: "v1/bookmarks?limit=3",
    "followers": lambda user: f"v1/accounts/{user.pk}/followers?limit=3",
}


@pytest.mark.long
@pytest.mark.parametrize("name", NEWEST)
@pytest.mark.parametrize("above", ["min_id", "since_id"])
def test_a_page_above_the_newest_leads_on_from_there(name: str, above: str, reader: User) -> None:
    sender = UserFactory()
    relations.follow(follower=reader, followee=sender)
    for _ in range(5):
        relations.follow(follower=UserFactory(), followee=sender)
    path, caller = NEWEST[name](sender), Caller(reader)
    said = []
    for _ in range(5):
        said.append(items.publish(sender=sender, content={"text": "#tag"}))
        items.like(user=reader, item=said[-1])
        items.bookmark(user=reader, item=said[-1])
        items.like(user=sender, item=items.publish(sender=reader, content={"text": "mine"}))
    every = down(caller, path)
    first = caller.get(path)
    newest = links(caller).get("prev", f"&min_id={said[-1].pk}").rpartition("&")[2]
    here = newest.replace("min_id", above)
    assert caller.get(f"{path}&{here}") == []
    assert links(caller)["prev"].endswith(f"&{newest}")
    lowest = [int(one["id"]) for one in caller.get(f"{path}&min_id=0")]
    assert lowest == every[-3:]
    assert caller.get(f"{path}&since_id=0") == first
    assert up(caller, path, 0) == every


def test_home_says_what_served_it(reader: User) -> None:
    caller = Caller(reader)
    caller.get("v1/timelines/home")
    assert caller.response.headers["X-Feed-Source"]


def test_the_link_keeps_the_rest_of_the_query(reader: User) -> None:
    for _ in range(3):
        items.publish(sender=reader, content={"text": "x"})
    caller = Caller(reader)
    caller.get("v1/timelines/public?limit=1&local=true&max_id=9007199254740991")
    found: dict[str, Any] = links(caller)
    assert "limit=1" in found["next"]
    assert "local=true" in found["next"]
    assert found["next"].count("max_id") == 1
