import re

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.actions import delete_account
from accounts.models import User
from discover import feedback, recent
from discover.models import IssuedPage, NotInterested
from items import actions as items
from items.models import Item
from relations import actions as relations
from tests.support.answers import lasting
from tests.support.api import API
from tests.support.at_once import at_once
from tests.support.deletions import settle
from tests.support.factories import ItemFactory, UserFactory
from tests.support.pages import PART
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def unwanted(user: User) -> list[int]:
    return list(NotInterested.objects.filter(user=user).order_by("-id").values_list("item", flat=True))


def hidden(kind: str, ann: User) -> Item:
    item: Item = ItemFactory()
    match kind:
        case "deleted":
            items.delete(item=item)
        case "for followers":
            items.change_visibility(item=item, visibility="followers")
        case "blocked":
            relations.block(blocker=item.sender, blocked=ann)
        case "held":
            items.hold(item=item, reasons=["words"])
    return item


HIDDEN = ["deleted", "for followers", "blocked", "held"]


# --- The verbs -------------------------------------------------------------------------------------------
def test_it_is_said_once_and_taken_back(ann: User) -> None:
    item, other = ItemFactory(), ItemFactory()
    assert feedback.not_interested(user=ann, item=item)
    assert not feedback.not_interested(user=ann, item=item)
    assert feedback.not_interested(user=ann, item=other)
    assert unwanted(ann) == [other.pk, item.pk]
    assert feedback.interested_again(user=ann, item=item)
    assert not feedback.interested_again(user=ann, item=item)
    assert unwanted(ann) == [other.pk]
    assert not feedback.interested_again(user=UserFactory(), item=other)
    assert unwanted(ann) == [other.pk]


def test_of_a_repost_it_is_the_original(ann: User) -> None:
    item: Item = ItemFactory()
    repost, _ = items.repost(sender=UserFactory(), item=item)
    feedback.not_interested(user=ann, item=repost)
    assert unwanted(ann) == [item.pk]
    feedback.interested_again(user=ann, item=repost)
    assert unwanted(ann) == []


def test_each_is_one_statement(ann: User) -> None:
    item: Item = ItemFactory()
    with statements() as seen:
        feedback.not_interested(user=ann, item=item)
        feedback.interested_again(user=ann, item=item)
    assert len(seen) == 2


@pytest.mark.django_db(transaction=True)
def test_many_at_once_say_it_once() -> None:
    ann, item = UserFactory(), ItemFactory()
    said = at_once(*[lambda: feedback.not_interested(user=ann, item=item)] * 8)
    assert sorted(said) == [False] * 7 + [True]
    assert unwanted(ann) == [item.pk]
    said = at_once(*[lambda: feedback.interested_again(user=ann, item=item)] * 8)
    assert sorted(said) == [False] * 7 + [True]


def test_nothing_of_a_deleted_account_is_left(ann: User) -> None:
    other = UserFactory()
    for user in (ann, other):
        for item in ItemFactory.create_batch(3):
            feedback.not_interested(user=user, item=item)
            IssuedPage.objects.create(user=user, item_ids=[item.pk], reasons=[""], has_more=False, issued_at=NOW)
    assert feedback.forget_user(user=ann, limit=2) == 4
    assert feedback.forget_user(user=ann, limit=2) == 2
    assert feedback.forget_user(user=ann, limit=2) == 0
    assert (NotInterested.objects.count(), IssuedPage.objects.count()) == (3, 3)


def test_it_goes_with_the_account(ann: User) -> None:
    feedback.not_interested(user=ann, item=ItemFactory())
    recent.record(ann.pk, items=[1], now=NOW)
    delete_account(user=ann)
    settle(ann)
    assert not NotInterested.objects.exists()
    assert recent.views_of(ann.pk, now=NOW) == recent.Views([], [])


# --- Over the API ----------------------------------------------------------------------------------------
def test_put_and_delete(api: APIClient, ann: User) -> None:
    item: Item = ItemFactory()
    for method, left in ((api.put, [item.pk]), (api.put, [item.pk]), (api.delete, []), (api.delete, [])):
        response = method(f"{API}/items/{item.pk}/not-interested")
        assert (response.status_code, response.content) == (204, b"")
        assert unwanted(ann) == left


@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize("method", ["put", "delete"])
def test_hidden_items_are_as_if_they_had_never_been(api: APIClient, ann: User, method: str, kind: str) -> None:
    item = hidden(kind, ann)
    response = getattr(api, method)(f"{API}/items/{item.pk}/not-interested")
    never = getattr(api, method)(f"{API}/items/12345/not-interested")
    assert (response.status_code, response.content) == (never.status_code, never.content) == (404, never.content)
    assert not NotInterested.objects.exists()


@pytest.mark.parametrize("text", ["abc", "0", "-1", "1.5", "1_0", "٣", "9007199254740993", "9" * 5000, "%00", "1e3"])
def test_malformed_ids(api: APIClient, text: str) -> None:
    assert api.put(f"{API}/items/{text}/not-interested").status_code == 404


def test_callers_who_may_not(api: APIClient, page: Client) -> None:
    address = f"{API}/items/{ItemFactory().pk}/not-interested"
    for credentials in ("", "Token abc", "Token", "Basic YTpi"):
        response = APIClient().put(address, headers={"authorization": credentials} if credentials else {})
        assert response.status_code == 401
        assert response["WWW-Authenticate"].startswith("Token")
    session = Client(enforce_csrf_checks=True)
    session.cookies = page.cookies
    assert session.put(address).status_code == 403
    assert api.post(address).status_code == api.get(address).status_code == 405
    assert not NotInterested.objects.exists()


# --- In the pages ----------------------------------------------------------------------------------------
def test_a_line_takes_the_place_of_the_card_and_the_card_comes_back(page: Client, ann: User) -> None:
    item: Item = ItemFactory(content={"text": "zebra"})
    line = page.post(f"/items/{item.pk}/not-interested", **PART).content.decode()
    assert "see less like this." in line
    assert re.search(rf'<article [^>]*data-id="{item.pk}"', line)
    assert f'hx-post="/items/{item.pk}/interested"' in line
    assert "zebra" not in line
    assert unwanted(ann) == [item.pk]
    response = page.post(f"/items/{item.pk}/interested", **PART)
    card = response.content.decode()
    assert "zebra" in card
    menu = page.get(f"/items/{item.pk}/menu?on=discover", **PART).content.decode()
    assert f'hx-post="/items/{item.pk}/not-interested"' in menu, "it can be said again"
    assert f'href="/items/{item.pk}/menu?on=discover"' in card
    assert response["HX-Trigger"] == '{"restored": {}}'
    assert unwanted(ann) == []


@pytest.mark.slow
def test_the_card_comes_back_with_why_it_was_recommended(page: Client, ann: User) -> None:
    other, item = ItemFactory(), ItemFactory()
    for user, codes in ((UserFactory(), ["liked", "liked"]), (ann, ["popular", "fresh"])):
        IssuedPage.objects.create(user=user, item_ids=[other.pk, item.pk], reasons=codes, has_more=False, issued_at=NOW)
    response = page.post(f"/items/{item.pk}/interested", **PART)
    assert response.context["card"].item.reason == "New"
    never = page.post(f"/items/{ItemFactory().pk}/interested", **PART)
    assert never.context["card"].item.reason is None


@pytest.mark.slow
def test_without_javascript_one_comes_back_with_a_message(page: Client, ann: User) -> None:
    item: Item = ItemFactory()
    response = page.post(f"/items/{item.pk}/not-interested", {"next": f"/items/{item.pk}"}, follow=True)
    assert response.redirect_chain == [(f"/items/{item.pk}", 302)]
    assert "see less like this." in response.content.decode()
    response = page.post(f"/items/{item.pk}/interested", follow=True)
    assert response.redirect_chain == [("/history/not-interested", 302)]
    assert "recommend posts like this again" in response.content.decode()
    evil = page.post(f"/items/{item.pk}/not-interested", {"next": "https://evil.example/"})
    assert evil["Location"] == "/history/not-interested"


@pytest.mark.slow
@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize("verb", ["not-interested", "interested"])
def test_pages_of_what_is_hidden(page: Client, ann: User, verb: str, kind: str) -> None:
    item = hidden(kind, ann)
    response = page.post(f"/items/{item.pk}/{verb}")
    never = page.post(f"/items/12345/{verb}")
    assert response.status_code == never.status_code == 404
    assert lasting(response) == lasting(never)
    assert page.get(f"/items/{ItemFactory().pk}/{verb}").status_code == 405


def test_strangers_are_asked_to_log_in(client: Client) -> None:
    item: Item = ItemFactory()
    assert client.post(f"/items/{item.pk}/not-interested")["Location"] == "/login"
    assert not NotInterested.objects.exists()


@pytest.mark.slow
def test_the_menu_offers_it_on_the_page_of_anothers_item(page: Client, client: Client, ann: User) -> None:
    other, own = ItemFactory(), ItemFactory(sender=ann)

    def menu_on(address: str, item: Item) -> str:
        link = re.search(rf'href="(/items/{item.pk}/menu[^"]*)"', page.get(address).content.decode())
        return page.get(link[1], **PART).content.decode() if link else ""

    assert "Not interested" in menu_on(f"/items/{other.pk}", other)
    assert "Delete" in menu_on(f"/items/{own.pk}", own)
    assert "Not interested" not in menu_on(f"/items/{own.pk}", own)
    assert "Report" in menu_on(f"/@{other.sender.username}", other)
    assert "Not interested" not in menu_on(f"/@{other.sender.username}", other), "only where it is of use"
    client.logout()
    assert "/menu" not in client.get(f"/items/{other.pk}").content.decode()


# --- The list of them ------------------------------------------------------------------------------------
@pytest.mark.slow
def test_what_one_does_not_want_the_last_said_first(page: Client, ann: User) -> None:
    made = [ItemFactory(content={"text": f"zebra {number}."}) for number in range(45)]
    for item in [*made[1:], made[0]]:
        feedback.not_interested(user=ann, item=item)
    feedback.not_interested(user=UserFactory(), item=ItemFactory(content={"text": "zebra 99."}))
    seen: list[int] = []
    address = "/history/not-interested"
    while address:
        shown = page.get(address).content.decode()
        seen += [int(number) for number in re.findall(r"zebra (\d+)\.", shown)]
        more = re.search(r'rel="next" href="([^"]+)"', shown)
        address = more[1] if more else ""
    assert seen == [0, *range(44, 0, -1)]


def test_the_list_has_an_undo_for_each_and_a_word_where_it_is_empty(page: Client, ann: User) -> None:
    assert "Choose “Not interested”" in page.get("/history/not-interested").content.decode()
    item: Item = ItemFactory()
    feedback.not_interested(user=ann, item=item)
    shown = page.get("/history/not-interested").content.decode()
    assert f'action="/items/{item.pk}/interested"' in shown
    part = page.get("/history/not-interested?last_id=9007199254740992", **PART).content.decode()
    assert f'action="/items/{item.pk}/interested"' in part
    assert "<html" not in part


@pytest.mark.slow
@pytest.mark.parametrize("query", ["last_id=abc", "last_id=0", "last_id=-1", "last_id=1&last_id=2", "last_id=%00"])
@pytest.mark.parametrize("address", ["/history", "/history/not-interested"])
def test_positions_that_are_none(page: Client, address: str, query: str) -> None:
    assert page.get(f"{address}?{query}").status_code == 400
    assert page.get(f"{address}?last_id=").status_code == 200


@pytest.mark.slow
def test_the_number_of_statements_does_not_grow(page: Client, ann: User) -> None:
    counts = []
    page.get("/history")  # copies the session to the cache
    for number in (1, 12):
        for item in ItemFactory.create_batch(number):
            feedback.not_interested(user=ann, item=item)
            recent.record(ann.pk, items=[item.pk], now=NOW)
        for address in ("/history", "/history/not-interested"):
            with statements() as seen:
                page.get(address)
            counts.append(len(seen))
    assert counts[:2] == counts[2:]
