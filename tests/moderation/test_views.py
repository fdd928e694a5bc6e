import json
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import User
from items import actions as items
from items.models import Item, Status, Visibility
from moderation.models import Report, WordRule
from tests.support.admin import text
from tests.support.cases import Say
from tests.support.factories import UserFactory
from tests.support.pages import PART, composed
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

TOLD = "Moderators check your post before others see it."


@pytest.fixture
def page(client: Client, reader: User) -> Client:
    client.force_login(reader)
    return client


def address(item: Item) -> str:
    return f"/items/{item.pk}/report"


@pytest.mark.slow
def test_others_items_can_be_reported_and_ones_own_not(page: Client, reader: User, say: Say) -> None:
    item, own = say(), say(by=reader)
    menu = f"/items/{item.pk}/menu"
    assert f'href="{menu}"' in text(page.get("/"))
    assert f'href="{address(item)}?next=%2F"' in text(page.get(menu, headers={"referer": "http://testserver/"}))
    assert address(own) not in text(page.get(f"/items/{own.pk}/menu"))
    part = text(page.get(menu, HTTP_HX_CURRENT_URL="http://testserver/@sender", **PART))
    assert f'href="{address(item)}?next=%2F%40sender"' in part
    for referer in ("http://evil.example/x", "http://testserver//evil.example/x", "http://[evil"):
        elsewhere = text(page.get(menu, headers={"referer": referer}))
        assert "evil" not in elsewhere
        assert f'href="{address(item)}?next=%2F"' in elsewhere
    assert "/report" not in text(Client().get(f"/items/{item.pk}"))


@pytest.mark.slow
def test_the_way_of_a_report(page: Client, reader: User, say: Say) -> None:
    item = say("bad <b>words</b>")
    asked = text(page.get(address(item), {"next": "/@sender"}))
    assert "bad &lt;b&gt;words&lt;/b&gt;" in asked
    assert '<input type="hidden" name="next" value="/@sender">' in asked
    thanks = text(page.post(address(item), {"reason": "abuse", "text": "see", "next": "/@sender"}))
    assert "Thanks for letting us know" in thanks
    assert 'class="button" href="/@sender"' in thanks
    report = Report.objects.get()
    assert (report.item, report.reporter, report.reason, report.text) == (item, reader, "abuse", "see")
    assert "Thanks for letting us know" in text(page.post(address(item), {"reason": "spam", "next": "//evil.example"}))
    assert Report.objects.count() == 1


@pytest.mark.parametrize("fields", [{}, {"reason": "boring"}, {"reason": "spam", "text": "x" * 501}])
def test_a_form_that_is_not_filled_in_comes_back(page: Client, say: Say, fields: dict[str, str]) -> None:
    item = say()
    response = page.post(address(item), fields)
    assert response.status_code == 422
    assert "errorlist" in response.content.decode()
    assert not Report.objects.exists()


def test_a_repost_leads_to_its_original(page: Client, say: Say) -> None:
    original = say("the original")
    repost, _ = items.repost(sender=UserFactory.create(), item=original)
    assert "the original" in text(page.get(address(repost)))
    page.post(address(repost), {"reason": "spam"})
    assert Report.objects.get().item == original


def test_hidden_items_and_unknown_ids(page: Client, say: Say) -> None:
    hidden = say(visibility=Visibility.SELF)
    answers = [page.get(address(hidden)), page.get("/items/5/report"), page.get(f"/items/{'9' * 30}/report")]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers}) == 1
    assert page.post(address(hidden), {"reason": "spam"}).status_code == 404


def test_ones_own_and_strangers(page: Client, reader: User, say: Say) -> None:
    own = say(by=reader)
    assert "This is your own post." in text(page.get(address(own)))
    assert "This is your own post." in page.post(address(own), {"reason": "spam"}).content.decode()
    assert not Report.objects.exists()
    assert Client().get(address(own))["Location"].startswith("/login?next=")


def test_the_page_asks_little(page: Client, say: Say) -> None:
    item = say()
    page.get(address(item))
    with statements() as asked:
        page.get(address(item))
    assert len(asked) <= 5


@pytest.fixture
def writer(client: Client, sender: User, spam: WordRule) -> Client:
    client.force_login(sender)
    return client


def told(response: Any) -> bool:
    return TOLD in text(response)


@pytest.mark.slow
def test_senders_are_told(writer: Client) -> None:
    response = writer.post("/items/new", composed("spam"), follow=True)
    page = text(response)
    assert f'<li class="info">{TOLD}</li>' in page
    assert "in review" in page
    response = writer.post("/items/new", composed("harmless"), follow=True)
    assert f'<li class="info">{TOLD}</li>' not in text(response)


def test_senders_in_the_open_page_are_told_there(writer: Client) -> None:
    held = writer.post("/items/new", composed("spam"), **PART)
    assert (held.status_code, list(json.loads(held["HX-Trigger-After-Settle"]))) == (200, ["held"])
    published = writer.post("/items/new", composed("harmless"), **PART)
    assert list(json.loads(published["HX-Trigger-After-Settle"])) == ["published"]


def test_senders_of_replies_are_told(writer: Client, say: Say) -> None:
    root = say()
    response = writer.post("/items/new", composed("spam", reply_to=root.pk), follow=True)
    assert f'<li class="info">{TOLD}</li>' in text(response)
    assert "in review" in text(response)


@pytest.mark.slow
def test_senders_of_edits_are_told(writer: Client, say: Say) -> None:
    item = say()
    part = writer.post(f"/items/{item.pk}/edit", {"text": "spam"}, **PART)
    assert json.loads(part["HX-Trigger"]) == {"saved": {"words": TOLD}}
    assert "in review" in text(part)
    whole = writer.post(f"/items/{item.pk}/edit", {"text": "more spam"}, follow=True)
    assert f'<li class="info">{TOLD}</li>' in text(whole)
    assert Item.objects.get(pk=item.pk).status == Status.IN_REVIEW


def test_the_api_says_so_to_the_sender(sender: User, spam: WordRule) -> None:
    api = APIClient()
    api.force_authenticate(sender, token="x")
    response = api.post("/api/v1/items", {"content": {"text": "spam"}})
    assert (response.status_code, response.json()["status"]) == (201, "in_review")
    assert api.get(f"/api/v1/items/{response.json()['id']}").json()["status"] == "in_review"
