import re
from typing import Any

import pytest

from accounts.about.models import Rule
from accounts.models import User
from items import actions as items
from moderation import actions as moderation
from moderation import appeals
from moderation.decisions import Grounds, decisions_about
from notifications import actions, ungrouped
from notifications.feed import notifications_page
from notifications.models import Act, Notification
from relations import actions as relations
from tests.support.clients import Caller
from tests.support.factories import UserFactory, say
from tests.support.pages import logged_in

pytestmark = pytest.mark.django_db


def listed(user: User) -> list[tuple[str, str]]:
    return [(one["type"], one["account"]["username"]) for one in Caller(user).get("v1/notifications")]


def test_all_are_put_away_and_what_comes_later_is_told(ann: User, bob: User) -> None:
    post = say(ann)
    items.like(user=bob, item=post)
    relations.follow(follower=bob, followee=ann)
    items.like(user=ann, item=say(bob))
    assert listed(ann) == [("follow", "bob"), ("favourite", "bob")]
    assert Caller(ann).post("v1/notifications/clear") == {}
    assert listed(ann) == []
    assert Caller(ann).get("v1/notifications/unread_count") == {"count": 0}
    assert listed(bob) == [("favourite", "ann")]
    assert Caller(ann).post("v1/notifications/clear") == {}
    items.repost(sender=bob, item=post)
    assert listed(ann) == [("reblog", "bob")]


def test_what_moderators_tell_stays(ann: User, bob: User) -> None:
    actions.notify_of_decision(user=ann, decision_id=1, detail="warn", text="Be kind.")
    items.like(user=bob, item=say(ann))
    Caller(ann).post("v1/notifications/clear")
    assert [entry.text for entry in notifications_page(ann).items] == ["Be kind."]


def test_decisions_are_moderation_warnings(ann: User, bob: User) -> None:
    post = say(ann, "rude words")
    rule = Rule.objects.create(number=1, text="Be kind.")
    grounds = Grounds("Enough.", rule.pk)
    moderation.warn(user=ann, by=bob, grounds=grounds)
    moderation.reject_by_hand(item_id=post.pk, by=bob, grounds=grounds)
    removal, warning = decisions_about(ann)
    appeals.appeal(user=ann, decision_id=warning.pk, text="No.")
    actions.notify_of_decision(user=ann, decision_id=0, detail="warn", text="of an earlier version")
    caller = Caller(ann)
    first, second = caller.get("v1/notifications")
    assert (first["type"], first["account"]["username"], "status" in first) == ("moderation_warning", "ann", False)
    told = first["moderation_warning"]
    assert (told["id"], told["action"], told["text"], told["status_ids"], told["appeal"]) == (
        *(str(removal.pk), "delete_statuses", "Be kind.\nEnough.", [str(post.pk)], None),
    )
    assert second["moderation_warning"]["action"] == "none"
    assert second["moderation_warning"]["appeal"] == {"text": "No.", "state": "pending"}
    groups = caller.get("v2/notifications")["notification_groups"]
    assert [group["moderation_warning"]["id"] for group in groups] == [str(removal.pk), str(warning.pk)]
    assert "bob" not in str(caller.get("v1/notifications"))
    assert logged_in(ann).get(f"/disputes/strikes/{removal.pk}")["Location"] == f"/decisions/{removal.pk}"
    assert caller.get("v1/notifications", {"exclude_types[]": "moderation_warning"}) == []


def test_many_are_put_away_by_parts_and_the_rest_by_a_worker(
    ann: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "FEW", 2)
    monkeypatch.setattr(actions, "AT_ONCE", 4)
    for _ in range(10):
        items.like(user=bob, item=say(ann))
    below = actions.delete_batch(user=ann)
    assert below is not None
    assert Notification.objects.filter(recipient=ann, position__lt=below).count() == 2
    assert listed(ann) == []
    items.like(user=bob, item=say(ann))
    assert actions.delete_batch(user=ann, below=below) is None
    assert len(listed(ann)) == 1


def test_one_is_put_away(ann: User, bob: User) -> None:
    post, other = say(ann), UserFactory(username="cid")
    items.like(user=bob, item=post)
    items.like(user=other, item=post)
    relations.follow(follower=bob, followee=ann)
    newest, second, _third = Caller(ann).get("v1/notifications")
    assert (second["type"], second["account"]["username"]) == ("favourite", "cid")
    assert Caller(ann).post(f"v1/notifications/{second['id']}/dismiss") == {}
    assert listed(ann) == [("follow", "bob"), ("favourite", "bob")]
    Caller(bob).post(f"v1/notifications/{newest['id']}/dismiss", status=404)
    assert Caller(ann).post(f"v1/notifications/{newest['id']}/dismiss") == {}
    Caller(ann).get(f"v1/notifications/{newest['id']}", status=404)
    Caller(ann).post(f"v1/notifications/{newest['id']}/dismiss", status=404)
    assert listed(ann) == [("favourite", "bob")]


def ids_of(user: User, **named: Any) -> dict[str, str]:
    """Ids of notifications by the actor's name."""
    return {one["account"]["username"]: one["id"] for one in Caller(user).get("v1/notifications", named)}


def test_ids_stay_whoever_comes_and_goes(ann: User, bob: User) -> None:
    post, cid, dan = say(ann), UserFactory(username="cid"), UserFactory(username="dan")
    for user in (bob, cid):
        items.like(user=user, item=post)
    first = ids_of(ann)
    items.like(user=dan, item=post)
    told = ids_of(ann)
    assert told | first == told
    assert sorted(told, key=lambda name: -int(told[name])) == ["dan", "cid", "bob"] == list(told)
    items.unlike(user=dan, item=post)
    assert ids_of(ann) == first
    items.like(user=dan, item=post)
    assert ids_of(ann) == told
    Caller(ann).post(f"v1/notifications/{told['dan']}/dismiss")
    Caller(ann).post(f"v1/notifications/{told['bob']}/dismiss")
    assert ids_of(ann) == {"cid": told["cid"]}
    Caller(ann).post(f"v1/notifications/{told['dan']}/dismiss", status=404)
    items.unlike(user=dan, item=post)
    items.like(user=dan, item=post)
    again = ids_of(ann)
    assert list(again) == ["dan", "cid"]
    assert int(again["dan"]) > int(told["dan"])


def test_an_app_that_polls_is_told_once(ann: User, bob: User) -> None:
    post, seen = say(ann), []
    since = "1"
    for name in ("cid", "dan", "eve", "fay"):
        items.like(user=UserFactory(username=name), item=post)
        for one in Caller(ann).get("v1/notifications", {"since_id": since}):
            seen.append(one["account"]["username"])
            since = one["id"]
    assert seen == ["cid", "dan", "eve", "fay"]


def test_all_of_a_crowd_are_listed(ann: User) -> None:
    post = say(ann)
    crowd = UserFactory.create_batch(9)
    for user in crowd:
        items.like(user=user, item=post)
    caller, walked = Caller(ann), []
    query: dict[str, Any] | None = {"limit": 4}
    while query:
        walked += [one["account"]["username"] for one in caller.get("v1/notifications", query)]
        below = re.search(r"max_id=(\d+)", caller.response.get("Link", ""))
        query = {"limit": 4, "max_id": below[1]} if below else None
    assert walked == [user.username for user in crowd[::-1]]


def test_mentions_are_found_below_a_crowd(ann: User, bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, least in (("SCAN", 2), ("WIDE", 3), ("WIDEST", 1)):
        monkeypatch.setattr(ungrouped, name, least)
    say(bob, "hello @ann")
    post = say(ann)
    for user in UserFactory.create_batch(12):
        items.like(user=user, item=post)
    (mention,) = Caller(ann).get("v1/notifications", {"types[]": ["mention"]})
    assert mention["account"]["username"] == "bob"
    caller = Caller(ann)
    assert caller.get("v1/notifications", {"limit": 1, "exclude_types[]": ["favourite"]}) == []
    below = re.search(r"max_id=(\d+)", caller.response["Link"])
    assert below
    query = {"limit": 5, "exclude_types[]": ["favourite"], "max_id": below[1]}
    assert [one["id"] for one in caller.get("v1/notifications", query)] == [mention["id"]]
    assert caller.get("v1/notifications", {"types[]": ["poll"]}) == []


def test_all_hidden_ones_are_looked_through_until_one_is_shown(
    ann: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, least in (("SCAN", 0), ("WIDE", 2)):
        monkeypatch.setattr(ungrouped, name, least)
    post, caller = say(ann), Caller(ann)
    items.like(user=bob, item=post)
    known = ids_of(ann)["bob"]
    likers = UserFactory.create_batch(8)
    for user in likers:
        items.like(user=user, item=post)
        relations.block(blocker=ann, blocked=user)
    items.like(user=UserFactory(username="cid"), item=post)
    (newest,) = caller.get("v1/notifications", {"min_id": known, "limit": 1})
    assert newest["account"]["username"] == "cid"
    query = {"limit": 1, "max_id": newest["id"]}
    assert [one["id"] for one in caller.get("v1/notifications", query)] == [known]


def test_mentions_whose_act_is_gone_are_counted_as_looked_through(
    ann: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, least in (("SCAN", 0), ("WIDE", 1), ("WIDEST", 2)):
        monkeypatch.setattr(ungrouped, name, least)
    for _ in range(9):
        say(bob, "hello @ann")
    Act.objects.all().delete()
    caller = Caller(ann)
    assert caller.get("v1/notifications", {"types[]": ["mention"], "limit": 1}) == []
    assert re.search(r"max_id=(\d+)", caller.response["Link"])


def test_mentions_that_were_put_away_are_not_shown_while_their_entries_go(
    ann: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "FEW", 1)
    monkeypatch.setattr(actions, "AT_ONCE", 1)
    for _ in range(3):
        say(bob, "hello @ann")
    assert actions.delete_batch(user=ann) is not None
    assert Notification.objects.filter(recipient=ann).count() == 2
    assert Caller(ann).get("v1/notifications", {"types[]": ["mention"]}) == []


def test_those_of_one_account(ann: User, bob: User) -> None:
    post = say(ann)
    for user in (bob, UserFactory(username="cid")):
        items.like(user=user, item=post)
    assert list(ids_of(ann, account_id=bob.pk)) == ["bob"]


def test_unread_ones_are_those_above_the_mark(ann: User, bob: User) -> None:
    post = say(ann)
    for user in (bob, UserFactory(username="cid"), UserFactory(username="dan")):
        items.like(user=user, item=post)
    caller, found = Caller(ann), ids_of(ann)
    assert caller.get("v1/notifications/unread_count") == {"count": 3}
    caller.post("v1/markers", {"notifications": {"last_read_id": found["cid"]}})
    assert caller.get("v1/notifications/unread_count") == {"count": 1}
    caller.post("v1/markers", {"notifications": {"last_read_id": found["dan"]}})
    assert caller.get("v1/notifications/unread_count") == {"count": 0}
    assert caller.get("v1/markers", {"timeline[]": ["notifications"]})["notifications"]["last_read_id"] == found["dan"]


def test_a_list_that_was_put_away_has_no_mark_of_reading(ann: User, bob: User) -> None:
    items.like(user=bob, item=say(ann))
    Caller(ann).post("v1/notifications/clear")
    assert Caller(ann).get("v1/markers", {"timeline[]": ["notifications"]}) == {}


def test_a_mention_that_was_put_away_is_not_told_again_by_an_edit(ann: User, bob: User) -> None:
    post = say(bob, "hello @ann")
    (mention,) = Caller(ann).get("v1/notifications")
    Caller(ann).post(f"v1/notifications/{mention['id']}/dismiss")
    items.edit(item=post, content={"text": "hello again @ann"})
    assert listed(ann) == []


def test_ids_that_are_none_and_tokens_that_may_not(ann: User) -> None:
    for text in ("0", "-1", "x", "9" * 30):
        Caller(ann).post(f"v1/notifications/{text}/dismiss", status=404)
    for path in ("v1/notifications/clear", "v1/notifications/1/dismiss"):
        Caller(None).post(path, status=401)
        Caller(ann, "read").post(path, status=403)


def groups_of(user: User, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Caller(user).get(f"v2/notifications{query}")["notification_groups"]
    return found


def test_likes_and_reposts_of_a_status_and_follows_are_groups(ann: User, bob: User) -> None:
    post, other, fans = say(ann), say(ann), UserFactory.create_batch(10)
    for fan in fans:
        items.like(user=fan, item=post)
        relations.follow(follower=fan, followee=ann)
    items.repost(sender=bob, item=post)
    items.like(user=bob, item=other)
    answers = [items.publish(sender=bob, content={"text": "@ann hello"}) for _ in range(2)]
    caller = Caller(ann)
    body = caller.get("v2/notifications")
    told = body["notification_groups"]
    assert [(one["type"], one["notifications_count"], one.get("status_id")) for one in told] == [
        ("mention", 1, str(answers[1].pk)),
        ("mention", 1, str(answers[0].pk)),
        ("favourite", 1, str(other.pk)),
        ("reblog", 1, str(post.pk)),
        ("follow", 10, None),
        ("favourite", 10, str(post.pk)),
    ]
    flat = caller.get("v1/notifications?limit=80")
    likes = [one["id"] for one in flat if one["type"] == "favourite" and one["status"]["id"] == str(post.pk)]
    last = told[-1]
    assert (last["page_max_id"], last["page_min_id"]) == (likes[0], likes[-1])
    assert last["most_recent_notification_id"] == int(likes[0])
    assert last["sample_account_ids"] == [str(fan.pk) for fan in fans[::-1]][:8]
    assert {one["id"] for one in body["accounts"]} == {name for one in told for name in one["sample_account_ids"]}
    assert {one["id"] for one in body["statuses"]} == {one["status_id"] for one in told if "status_id" in one}
    assert "partial_accounts" not in body
    assert caller.get("v2/notifications/unread_count") == {"count": 6}
    assert caller.get("v2/notifications/unread_count?limit=3") == {"count": 3}
    partial = caller.get("v2/notifications?expand_accounts=partial_avatars")
    assert {one["id"] for one in partial["accounts"]} == {one["sample_account_ids"][0] for one in told}
    assert len(partial["partial_accounts"]) == 7
    assert [one["type"] for one in groups_of(ann, "?types[]=follow")] == ["follow"]
    assert len(groups_of(ann, "?grouped_types[]=follow&limit=80")) == 15
    assert groups_of(ann, "?exclude_types[]=mention&limit=1") == [told[2]]
    caller.get("v2/notifications?expand_accounts=some", status=422)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_groups_are_walked_both_ways(limit: int, ann: User) -> None:
    posts, fans = [say(ann) for _ in range(3)], UserFactory.create_batch(4)
    for fan in fans:
        for post in posts:
            items.like(user=fan, item=post)
        relations.follow(follower=fan, followee=ann)
    caller, every = Caller(ann), {one["group_key"]: one for one in groups_of(ann)}
    assert len(every) == 4
    for rel, path in (
        ("next", f"v2/notifications?limit={limit}"),
        ("prev", f"v2/notifications?limit={limit}&min_id=0"),
    ):
        seen: set[str] = set()
        spans: list[tuple[int, int]] = []
        while path:
            found = caller.get(path)["notification_groups"]
            assert len(found) <= limit
            for one in found:
                seen.add(one["group_key"])
                spans.append((int(one["page_min_id"]), int(one["page_max_id"])))
                same = every[one["group_key"]]
                for name in ("notifications_count", "most_recent_notification_id", "sample_account_ids"):
                    assert one[name] == same[name]
            link = re.search(rf'<[^>]*/api/([^>]*)>; rel="{rel}"', caller.response.headers.get("Link", ""))
            path = link[1] if link and found else ""
        assert seen == set(every)
        assert len(set(spans)) == len(spans)


def test_one_group_its_people_and_its_end(ann: User, bob: User) -> None:
    post, fans = say(ann), UserFactory.create_batch(9)
    for fan in fans:
        items.like(user=fan, item=post)
    items.like(user=bob, item=say(ann))
    mention = items.publish(sender=bob, content={"text": "@ann hello"})
    caller = Caller(ann)
    alone, other, likes = (one["group_key"] for one in groups_of(ann))
    body = caller.get(f"v2/notifications/{likes}")
    assert [one["notifications_count"] for one in body["notification_groups"]] == [9]
    assert [one["id"] for one in body["statuses"]] == [str(post.pk)]
    assert [one["id"] for one in caller.get(f"v2/notifications/{likes}/accounts")] == [
        str(fan.pk) for fan in fans[::-1]
    ]
    assert [one["id"] for one in caller.get(f"v2/notifications/{alone}")["statuses"]] == [str(mention.pk)]
    for key in (likes, alone):
        Caller(bob).get(f"v2/notifications/{key}", status=404)
        Caller(bob).post(f"v2/notifications/{key}/dismiss", status=404)
        Caller(ann, "write").get(f"v2/notifications/{key}", status=403)
        assert caller.post(f"v2/notifications/{key}/dismiss") == {}
        caller.get(f"v2/notifications/{key}", status=404)
    assert [one["group_key"] for one in groups_of(ann)] == [other]
    for key in (
        "x",
        "ungrouped-0",
        "ungrouped-9999999999999999",
        "favourite-1-20260230",
        "favourite-1-00000000",
        "follow-0-19700101",
        "favourite-1-99991231",
    ):
        caller.get(f"v2/notifications/{key}", status=404)
