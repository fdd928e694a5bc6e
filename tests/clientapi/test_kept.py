"""What an app sends is kept or refused, never taken and dropped."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.about import site
from accounts.about.models import Rule
from accounts.models import User
from items import actions as items
from items.models import Item, Visibility
from moderation.models import Report
from relations import actions as relations
from tests.support.clients import Caller
from tests.support.factories import UserFactory, say
from tests.support.pictures import jpeg

pytestmark = pytest.mark.django_db

OWN = "v1/accounts/update_credentials"


@pytest.fixture
def ann() -> User:
    return UserFactory(username="ann")


@pytest.fixture
def caller(ann: User) -> Caller:
    return Caller(ann)


def change(caller: Caller, *, status: int = 200, **fields: Any) -> Any:
    return caller.ask("patch", OWN, fields, status=status)


def test_the_defaults_of_new_posts_are_kept_and_used(caller: Caller) -> None:
    sent = {"privacy": "private", "sensitive": True, "language": "pt-BR"}
    source = change(caller, source=sent)["source"]
    assert {name: source[name] for name in sent} == sent
    told = caller.get("v1/preferences")
    assert [told[f"posting:default:{name}"] for name in ("visibility", "sensitive", "language")] == [*sent.values()]
    status = caller.post("v1/statuses", {"status": "x"})
    assert [status[name] for name in ("visibility", "sensitive", "language")] == [*sent.values()]
    assert Item.objects.get(pk=status["id"]).visibility == Visibility.FOLLOWERS
    other = caller.post("v1/statuses", {"status": "y", "visibility": "public", "sensitive": False, "language": "ja"})
    assert [other[name] for name in ("visibility", "sensitive", "language")] == ["public", False, "ja"]
    assert change(caller, source={"language": ""})["source"]["language"] == ""


@pytest.mark.parametrize(
    "fields",
    [
        {"bot": True},
        {"hide_collections": "1"},
        {"attribution_domains": ["example.org"]},
        {"avatar_description": "me"},
        {"avatar": "data:image/png;base64,AAAA"},
        {"header": ["x"]},
        {"source": {"privacy": "unlisted"}},
        {"source": {"privacy": "direct"}},
        {"source": {"language": "klingon!"}},
        {"source": {"sensitive": "perhaps"}},
    ],
)
def test_what_the_site_does_not_offer_is_refused_as_a_whole(fields: dict[str, Any], caller: Caller, ann: User) -> None:
    assert "Validation failed" in change(caller, status=422, display_name="New", **fields)["error"]
    ann.refresh_from_db()
    assert ann.display_name != "New"


def test_what_holds_already_is_taken(caller: Caller) -> None:
    shown = change(caller, bot=False, hide_collections="false", attribution_domains=[], display_name="New")
    assert (shown["display_name"], shown["bot"], shown["source"]["attribution_domains"]) == ("New", False, [])


def test_the_defaults_are_settings_of_the_site_too(ann: User, caller: Caller) -> None:
    page = Client()
    page.force_login(ann)
    form = {"post_visibility": "followers", "post_sensitive": "on", "post_language": "de", "quotable_by": "everyone"}
    assert page.post(reverse("settings-preferences"), form).status_code == 302
    source = caller.get("v1/accounts/verify_credentials")["source"]
    assert [source[name] for name in ("privacy", "sensitive", "language")] == ["private", True, "de"]
    text = page.get(reverse("publish")).content.decode()
    assert 'name="language" value="de"' in text
    assert re.search('value="followers"[^>]* checked', text)
    page.post(reverse("publish"), {"text": "Hallo", "visibility": "followers", "language": "de"})
    item = Item.objects.get()
    assert item.content["language"] == "de"
    assert 'class="text" lang="de"' in page.get(reverse("item", args=[item.pk])).content.decode()


def test_an_app_keeps_a_language_that_the_page_does_not_list(ann: User, caller: Caller) -> None:
    change(caller, source={"language": "tlh"})
    page = Client()
    page.force_login(ann)
    assert '<option value="tlh" selected>' in page.get(reverse("settings-preferences")).content.decode()


def test_a_language_is_kept_in_edits(caller: Caller) -> None:
    status = caller.post("v1/statuses", {"status": "x", "language": "en"})
    address = f"v1/statuses/{status['id']}"
    assert caller.put(address, {"status": "y"})["language"] == "en"
    assert caller.put(address, {"status": "y", "language": "zh_TW"})["language"] == "zh-TW"
    caller.put(address, {"status": "y", "language": "x" * 30}, status=422)


def test_a_default_for_followers_makes_no_answer_wider(ann: User, caller: Caller) -> None:
    change(caller, source={"privacy": "private"})
    answered = say(UserFactory(), "x")
    sent = {"status": "y", "in_reply_to_id": str(answered.pk)}
    assert caller.post("v1/statuses", sent)["visibility"] == "private"


def test_follows_take_only_what_they_keep(caller: Caller) -> None:
    bob = UserFactory()
    caller.post(f"v1/accounts/{bob.pk}/follow", {"languages": ["en"]}, status=422)
    assert not relations.Follow.objects.exists()
    caller.post(f"v1/accounts/{bob.pk}/follow", {"languages": []})


def test_lists_show_no_replies(caller: Caller) -> None:
    caller.post("v1/lists", {"title": "x", "replies_policy": "followed"}, status=422)
    made = caller.post("v1/lists", {"title": "x", "replies_policy": "list"})
    assert made["replies_policy"] == "none"
    caller.put(f"v1/lists/{made['id']}", {"replies_policy": "followed"}, status=422)


def test_a_thumbnail_of_a_picture_is_refused(caller: Caller) -> None:
    files = {name: SimpleUploadedFile(f"{name}.jpg", jpeg(), "image/jpeg") for name in ("file", "thumbnail")}
    caller.post("v2/media", files, form=True, status=422)


def test_a_scheduled_poll_can_be_written_anew(caller: Caller) -> None:
    poll = {"options": ["a", "b"], "expires_in": 3_600, "multiple": True}
    sent = {"status": "?", "poll": poll, "language": "fr", "quote_approval_policy": "nobody"}
    made = caller.post("v1/statuses", sent | {"scheduled_at": (timezone.now() + timedelta(hours=1)).isoformat()})
    params = made["params"]
    assert params["poll"] == poll | {"hide_totals": False}
    assert (params["language"], params["quote_approval_policy"]) == ("fr", "nobody")
    caller.delete(f"v1/scheduled_statuses/{made['id']}")
    again = {"status": params["text"], "scheduled_at": made["scheduled_at"], "poll": params["poll"]}
    assert caller.post("v1/statuses", again)["params"]["poll"] == params["poll"]


def test_what_narrows_a_list_narrows_it(caller: Caller, ann: User) -> None:
    bob, dan = UserFactory(username="bob_one"), UserFactory(username="bob_two")
    relations.follow(follower=ann, followee=bob)
    for sender in (bob, dan):
        say(sender, "hi @ann #cats")
    assert caller.get(f"v1/notifications/unread_count?account_id={bob.pk}") == {"count": 1}
    assert caller.get("v1/notifications/unread_count?types[]=follow") == {"count": 0}
    assert caller.get("v1/notifications/unread_count?limit=1") == {"count": 1}
    assert caller.get("v1/timelines/tag/cats?remote=true") == []
    (status,) = caller.get(f"v2/search?q=cats&type=statuses&account_id={bob.pk}")["statuses"]
    assert status["account"]["id"] == str(bob.pk)
    assert caller.get("v2/search?q=cats&type=statuses&account_id=99999999")["statuses"] == []
    (found,) = caller.get("v2/search?q=bob&type=accounts&following=true")["accounts"]
    assert found["id"] == str(bob.pk)
    names = [one["id"] for one in caller.get("v1/accounts/search?q=bob")]
    assert [one["id"] for one in caller.get("v1/accounts/search?q=bob&offset=1")] == names[1:]


def test_searches_go_on_below_an_id(caller: Caller, ann: User) -> None:
    first, second = (say(ann, f"{word} #cats") for word in ("one", "two"))
    address = "v2/search?q=%23cats&type=statuses"
    assert [one["id"] for one in caller.get(f"{address}&max_id={second.pk}")["statuses"]] == [str(first.pk)]
    caller.get(f"{address}&min_id={first.pk}", status=422)


@pytest.mark.parametrize(
    "sent",
    ["media_ids[]=5&media_ids=6", "media_ids=6&media_ids[]=5", "media_ids[]=5&media_ids=", "media_ids=&media_ids[]=5"],
)
def test_no_name_of_a_list_hides_another(sent: str, caller: Caller, ann: User) -> None:
    form = {"data": f"status=x&{sent}", "content_type": "application/x-www-form-urlencoded"}
    response = caller.client.post("/api/v1/statuses", **form, **caller.headers)
    assert response.status_code in (400, 422), response.content
    assert not Item.objects.exists()
    caller.get("v1/accounts/relationships?id[]=5&id=6", status=400)


@pytest.mark.parametrize("part", [{"id": "5", "description": "a"}, {"description": "a"}, {"id": "", "focus": "0,0"}])
def test_an_edit_describes_only_its_own_media(part: dict[str, str], caller: Caller) -> None:
    medium = caller.post("v2/media", {"file": SimpleUploadedFile("a.jpg", jpeg(), "image/jpeg")}, form=True)
    status = caller.post("v1/statuses", {"status": "x", "media_ids": [medium["id"]]})
    own = {"id": medium["id"], "description": "kept"}
    address = f"v1/statuses/{status['id']}"
    caller.put(address, {"status": "y", "media_attributes": [own, part]}, status=422)
    assert caller.get(address)["media_attachments"][0]["description"] is None
    assert caller.put(address, {"media_attributes": [own]})["media_attachments"][0]["description"] == "kept"


def test_an_edit_does_not_change_who_sees_a_post(caller: Caller, ann: User) -> None:
    own = items.publish(sender=ann, content={"text": "x"}, visibility=Visibility.MUTUALS)
    address = f"v1/statuses/{own.pk}"
    assert caller.put(address, {"status": "y", "visibility": "private"})["visibility"] == "private"
    for other in ("public", "direct", "bogus"):
        caller.put(address, {"status": "z", "visibility": other}, status=422)
    assert caller.get(f"{address}/source")["text"] == "y"


def test_only_allowed_people_are_mentioned(caller: Caller) -> None:
    bob, dan = UserFactory(username="bob"), UserFactory(username="dan")
    for allowed in ([], [str(dan.pk)], [""]):
        caller.post("v1/statuses", {"status": "hi @Bob", "allowed_mentions": allowed}, status=422)
    assert not Item.objects.exists()
    sent = {"status": "hi @Bob @nobody_here", "allowed_mentions": [str(bob.pk), str(dan.pk)]}
    assert [one["id"] for one in caller.post("v1/statuses", sent)["mentions"]] == [str(bob.pk)]


def test_a_report_keeps_all_its_rules(caller: Caller) -> None:
    bob = UserFactory()
    rules = [Rule.objects.create(number=number, text="Be kind.") for number in (1, 2, 3)]
    site.site_copy.set(site.read())
    sent = {"account_id": str(bob.pk), "category": "violation", "comment": "see"}
    caller.post("v1/reports", sent | {"rule_ids": [str(rules[place].pk) for place in (1, 0, 2)]})
    report = Report.objects.get()
    assert (report.rule_id, report.text) == (rules[1].pk, "see\n+ 1, 3")


def test_no_place_is_in_the_future(caller: Caller, ann: User) -> None:
    first = say(ann, "x")
    place = int(caller.post("v1/markers", {"home": {"last_read_id": "110000000000000000"}})["home"]["last_read_id"])
    assert first.pk < place < say(ann, "y").pk
