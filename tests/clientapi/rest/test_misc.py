from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework import exceptions

from accounts.about import site
from accounts.about.models import SiteSettings
from accounts.models import User
from clientapi.rest.statuses import one_status
from discover.models import PopularItem
from items.actions import publish
from moderation.models import Report
from tests.support.clients import Caller
from tests.support.factories import UserFactory, say
from tests.support.pages import logged_in
from tests.support.picture_posts import posted, sent

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    return UserFactory(username="ann")


def announce(text: str, *, days: int | None = None) -> None:
    until = timezone.now() + timedelta(days=days) if days is not None else None
    SiteSettings.objects.update_or_create(pk=1, defaults={"announcement": text, "announcement_until": until})
    site.site_copy.forget()


def test_without_an_announcement_there_is_none(user: User) -> None:
    announce("")
    assert Caller(user).get("v1/announcements") == Caller(None).get("v1/announcements") == []
    announce("Over", days=-1)
    assert Caller(user).get("v1/announcements") == []
    Caller(user).post("v1/announcements/1/dismiss", status=404)


def test_an_announcement_is_unread_until_it_is_dismissed(user: User) -> None:
    announce("We <move> on Sunday:\nhttps://example.org", days=2)
    caller, other = Caller(user), Caller(UserFactory())
    (found,) = caller.get("v1/announcements")
    assert "&lt;move&gt;" in found["content"]
    assert 'href="https://example.org"' in found["content"]
    assert (found["read"], found["published"], found["ends_at"][-1]) == (False, True, "Z")
    assert caller.post(f"v1/announcements/{found['id']}/dismiss") == {}
    assert caller.post(f"v1/announcements/{found['id']}/dismiss") == {}
    assert [one["read"] for one in caller.get("v1/announcements")] == [True]
    assert [one["read"] for one in other.get("v1/announcements")] == [False]
    assert "read" not in Caller(None).get("v1/announcements")[0]


def test_another_announcement_is_unread_again(user: User) -> None:
    announce("One")
    caller = Caller(user)
    first = caller.get("v1/announcements")[0]["id"]
    caller.post(f"v1/announcements/{first}/dismiss")
    announce("Two")
    (found,) = caller.get("v1/announcements")
    assert (found["read"], found["id"] != first) == (False, True)
    caller.post(f"v1/announcements/{first}/dismiss", status=404)
    Caller(None).post(f"v1/announcements/{found['id']}/dismiss", status=401)
    Caller(user, "read").post(f"v1/announcements/{found['id']}/dismiss", status=403)


def test_each_reported_status_counts_as_a_report(user: User, settings: Any) -> None:
    settings.RATES = settings.RATES | {"report": "3/hour"}
    author = Caller(UserFactory())
    ids = [author.post("v1/statuses", {"status": f"post {n}"})["id"] for n in range(4)]
    caller, account = Caller(user), str(author.user.pk if author.user else 0)
    caller.post("v1/reports", {"account_id": account, "status_ids": ids}, status=429)
    assert not Report.objects.exists()
    caller.post("v1/reports", {"account_id": account, "status_ids": ids[:2]})
    caller.post("v1/reports", {"account_id": account, "status_ids": ids[2:]}, status=429)
    assert Report.objects.count() == 2


def test_what_has_gone_meanwhile_is_not_found(user: User) -> None:
    with pytest.raises(exceptions.NotFound):
        one_status(5, user)


@pytest.mark.parametrize("path", ["trends/tags", "trends/statuses", "suggestions"])
def test_popular_things_are_turned_by_offset(user: User, path: str) -> None:
    for tag in ("bread", "nails", "soup"):
        for _ in range(2):
            item = publish(sender=UserFactory(), content={"text": f"about #{tag}"})
        PopularItem.objects.create(item_id=item.pk, popularity=2)
    caller = Caller(user)
    whole = caller.get(f"v1/{path}")
    assert len(whole) >= 3
    assert caller.get(f"v1/{path}?limit=1&offset=1") == whole[1:2]
    assert caller.get(f"v1/{path}?offset=2") == whole[2:]
    assert caller.get(f"v1/{path}?offset=200") == []
    for query in ("offset=-1", "offset=abc", "limit=0"):
        caller.get(f"v1/{path}?{query}", status=422)


def test_suggestions_of_both_versions_are_the_same(user: User) -> None:
    UserFactory.create_batch(3)
    caller = Caller(user)
    named = caller.get("v1/suggestions?limit=2")
    assert [one["account"] for one in caller.get("v2/suggestions?limit=2")] == named
    assert len(named) == 2


def test_a_filter_of_several_keywords() -> None:
    ann, bob = UserFactory(username="ann"), UserFactory(username="bob")
    caller, other = Caller(ann), Caller(bob)
    keywords = [{"keyword": "zebra", "whole_word": True}, {"keyword": "okapi"}]
    sent = {"title": "Animals", "context": ["home", "public"], "filter_action": "hide", "keywords_attributes": keywords}
    made = caller.post("v2/filters", sent)
    assert (made["title"], made["context"], made["filter_action"]) == ("Animals", ["home", "public"], "hide")
    assert [(one["keyword"], one["whole_word"]) for one in made["keywords"]] == [("zebra", True), ("okapi", False)]
    first, second = made["keywords"]
    address = f"v2/filters/{made['id']}"
    changed = [{"id": first["id"], "_destroy": True}, {"id": second["id"], "keyword": "lemur"}, {"keyword": "quokka"}]
    after = caller.put(address, {"keywords_attributes": changed, "context": ["thread"]})
    assert [one["keyword"] for one in after["keywords"]] == ["lemur", "quokka"]
    assert (after["id"], after["context"], after["title"]) == (made["id"], ["thread"], "Animals")
    assert caller.get("v2/filters") == [after]
    added = caller.post(f"{address}/keywords", {"keyword": "bilby", "whole_word": True})
    assert len(caller.get(f"{address}/keywords")) == 3
    keyword = f"v2/filters/keywords/{added['id']}"
    assert caller.put(keyword, {"keyword": "numbat"})["keyword"] == "numbat"
    item = say(bob, "a numbat and a quokka")
    (result,) = caller.get(f"v1/statuses/{item.pk}")["filtered"]
    assert (result["filter"]["id"], sorted(result["keyword_matches"])) == (made["id"], ["numbat", "quokka"])
    for method in ("get", "put", "delete"):
        getattr(other, method)(keyword, {"keyword": "mine"} if method == "put" else None, status=404)
        getattr(other, method)(address, {"title": "mine"} if method == "put" else None, status=404)
    for one in caller.get(f"{address}/keywords")[1:]:
        caller.delete(f"v2/filters/keywords/{one['id']}")
    caller.delete(f"v2/filters/keywords/{caller.get(f'{address}/keywords')[0]['id']}", status=422)
    caller.delete(address)
    assert caller.get("v2/filters") == []


def test_a_filter_that_blurs_pictures(user: User) -> None:
    other, caller = UserFactory(), Caller(user)
    sent_fields = {"title": "Cats", "context": ["home", "thread"], "filter_action": "blur"}
    made = caller.post("v2/filters", sent_fields | {"keywords_attributes": [{"keyword": "cats"}]})
    assert made["filter_action"] == "blur"
    assert caller.get("v1/filters")[0]["irreversible"] is False
    item = posted(other, sent(other), text="two cats")
    (result,) = caller.get(f"v1/statuses/{item.pk}")["filtered"]
    assert result["filter"]["filter_action"] == "blur"
    page = logged_in(user).get(f"/items/{item.pk}").content.decode()
    assert "two cats" in page
    assert 'class="warned filtered"' not in page
    assert 'class="veiled' in page or "veil" in page
    plain = logged_in(other).get(f"/items/{item.pk}").content.decode()
    assert page.count("veil") > plain.count("veil")
    caller.post("v2/filters", {"title": "cats", "context": ["thread"], "filter_action": "warn"})
    assert 'class="warned filtered"' in logged_in(user).get(f"/items/{item.pk}").content.decode()
    caller.post("v2/filters", {"title": "x", "context": ["home"], "filter_action": "smudge"}, status=422)
