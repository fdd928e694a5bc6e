import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.db.models import F
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from rest_framework.test import APIClient

from accounts.actions import issue_token
from accounts.models import User
from items import actions as items
from items.models import Status
from items.pages.forms import ItemForm
from moderation import actions, waiting
from moderation.models import Case, SenderKind, SenderRule, WordRule
from tests.support.cases import Say
from tests.support.factories import UserFactory
from tests.support.pages import PART, composed, logged_in
from tests.support.statements import statements
from tests.support.timelines import read

pytestmark = pytest.mark.django_db

LINK = "look at https://example.org"
NOTICE = "moderators check your posts with links before others see them"
LINKED = "Moderators check your post before others see it. It has a link, and your account is new."


@pytest.fixture
def newcomer(db: None) -> User:
    return UserFactory.create(username="newcomer", date_joined=timezone.now() - timedelta(hours=1))


@pytest.fixture
def page(newcomer: User) -> Client:
    return logged_in(newcomer)


@pytest.mark.parametrize("address", ["/", "/items/new"])
def test_the_composer_of_a_new_account_tells_of_links(address: str, page: Client, sender: User) -> None:
    assert NOTICE in page.get(address).content.decode()
    old = logged_in(sender)
    assert NOTICE not in old.get(address).content.decode()


def test_the_composer_of_a_message_does_not(page: Client) -> None:
    assert NOTICE not in page.get("/conversations/new").content.decode()


def test_so_do_the_composer_of_a_reply_and_one_with_errors(page: Client, say: Say) -> None:
    item = say()
    assert NOTICE in page.get(f"/items/{item.pk}").content.decode()
    assert NOTICE in page.get(f"/items/new?reply_to={item.pk}", **PART).content.decode()
    refused = page.post("/items/new", composed(""), **PART)
    assert (refused.status_code, NOTICE in refused.content.decode()) == (422, True)
    assert NOTICE in page.post("/items/new", composed("words"), **PART).content.decode()


def test_the_notice_is_for_those_alone_whose_links_are_held(newcomer: User, settings: Settings) -> None:
    def is_told(author: User) -> bool:
        return bool(ItemForm.fresh(reader=author).notice)

    assert is_told(newcomer)
    SenderRule.objects.create(user=newcomer, kind=SenderKind.WHITE)
    assert not is_told(newcomer)
    SenderRule.objects.update(kind=SenderKind.BLACK)
    assert is_told(newcomer)
    assert not is_told(UserFactory.create(date_joined=timezone.now(), is_staff=True))
    settings.MODERATION_LINK_AGE = timedelta(0)
    assert not is_told(newcomer)


def test_an_old_account_is_asked_about_without_a_query(sender: User) -> None:
    with statements() as asked:
        assert ItemForm.fresh(reader=sender).notice == ""
    assert not asked


def test_the_author_is_told_why_it_is_held(page: Client, newcomer: User) -> None:
    answer = page.post("/items/new", composed(LINK), **PART, HTTP_HX_TARGET="this")
    assert json.loads(answer["HX-Trigger-After-Settle"])["held"]["words"] == LINKED, "said once"
    moved = page.post("/items/new", composed(f"{LINK}/2"))
    assert [str(message) for message in get_messages(moved.wsgi_request)] == [LINKED]
    token = issue_token(user=newcomer)
    api = APIClient(HTTP_AUTHORIZATION=f"Token {token}")
    told = api.post("/api/v1/items", {"content": {"text": f"{LINK}/3"}}, format="json").json()
    assert (told["status"], told["review"]) == (Status.IN_REVIEW, LINKED)
    assert api.get(f"/api/v1/items/{told['id']}").json()["review"] == LINKED
    said = api.post("/api/v1/items", {"content": {"text": "words"}}, format="json").json()
    assert (said["status"], "review" in said) == (Status.PUBLISHED, False)


def test_words_pictures_and_lists_are_not_named(sender: User, spam: WordRule, say: Say) -> None:
    held = say("buy spam")
    page = logged_in(sender)
    told = page.get(f"/items/{held.pk}").content.decode()
    assert "Moderators check your post before others see it.<" in told
    assert "words:" not in told


def test_how_long_it_takes_is_told_from_five_reviews_on(spam: WordRule, moderator: User, say: Say) -> None:
    cases = [Case.objects.get(item=say(f"spam {number}", by=UserFactory.create())) for number in range(5)]
    for number, case in enumerate(cases):
        assert waiting.usual_wait() is None
        actions.approve(case=case, by=moderator)
        Case.objects.filter(pk=case.pk).update(opened_at=F("decided_at") - timedelta(hours=number))
    assert waiting.usual_wait() == timedelta(hours=2)
    waiting_item = say("spam, once more")
    page = logged_in(waiting_item.sender)
    assert "This usually takes about 2 hours." in page.get(f"/items/{waiting_item.pk}").content.decode()


def strip(client: Client) -> list[str]:
    found = re.search(r'<section id="held".*?</section>', client.get("/").content.decode(), re.DOTALL)
    assert found
    return re.findall(r'<article[^>]* data-id="(\d+)"', found[0])


def test_a_held_post_stands_above_the_authors_own_home_alone(
    page: Client, newcomer: User, reader: User, moderator: User, say: Say
) -> None:
    held = say(LINK, by=newcomer)
    say(LINK, by=newcomer, reply_to=say("root"))
    assert strip(page) == [str(held.pk)]
    shown = page.get("/").content.decode()
    assert "in review</span>" in shown
    assert LINKED in shown
    assert read(newcomer) == []
    others = logged_in(reader)
    assert strip(others) == []
    assert held.pk not in read(reader)
    actions.approve(case=Case.objects.get(item=held), by=moderator)
    assert strip(page) == []
    assert read(newcomer) == [held.pk]
    actions.reject(case=Case.objects.get(item=held), by=moderator, state="approved")
    assert strip(page) == []


def test_the_strip_comes_at_once_and_shows_three(page: Client, newcomer: User) -> None:
    for number in range(25):
        items.publish(sender=newcomer, content={"text": f"{LINK}/{number}"})
    whole = page.get("/", **PART, HTTP_HX_TARGET="held").content.decode()
    assert whole.count("in review</span>") == 3
    assert "<html" in whole
    assert 'hx-trigger="held from:body" hx-select="#held"' in whole
    assert 'id="held"' not in page.get("/", {"last_id": "9007199254740991"}).content.decode()


def test_only_what_waits_is_explained(newcomer: User, page: Client, say: Say) -> None:
    with statements() as asked:
        page.get("/")
    assert not any("moderation_case" in one for one in map(str, asked))
    held: Any = say(LINK, by=newcomer)
    with statements() as asked:
        page.get("/")
    assert sum("moderation_case" in one for one in map(str, asked)) == 2
    items.delete(item=held)
    assert strip(page) == []
