import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import QuotableBy, User
from items.actions import publish, repost
from items.models import Item, Visibility
from relations.actions import block, follow
from tests.support.factories import UserFactory, say

pytestmark = pytest.mark.django_db
MISSING = "This post isn&#x27;t available."


@pytest.fixture
def carol() -> User:
    return UserFactory.create(username="carol")


@pytest.fixture
def said(bob: User) -> Item:
    return say(bob, "the original")


def page(user: User | None, address: str, status: int = 200, **fields: Any) -> str:
    client = Client()
    if user:
        client.force_login(user)
    answer = client.post(address, fields) if fields else client.get(address)
    assert answer.status_code == status, answer.content.decode()[:3000]
    return answer.content.decode()


def test_the_composer_opens_with_the_quoted_card_inside(ann: User, said: Item) -> None:
    menu = page(ann, f"/items/{said.pk}/menu")
    assert f'href="/items/new?quote_of={said.pk}"' in menu
    html = page(ann, f"/items/new?quote_of={said.pk}")
    assert f'name="quote_of" value="{said.pk}"' in html
    assert "the original" in html
    page(ann, "/items/new", 302, text="my words", visibility="public", quote_of=said.pk)
    quote = Item.objects.get(sender=ann)
    assert (quote.text, quote.quote_of_id) == ("my words", said.pk)
    html = page(None, f"/items/{quote.pk}")
    assert "the original" in html
    assert f'data-quoted="{said.pk}"' in html


def test_a_refused_quote_keeps_the_card(ann: User, said: Item) -> None:
    html = page(ann, "/items/new", 422, text="", visibility="public", quote_of=said.pk)
    assert f'name="quote_of" value="{said.pk}"' in html
    assert "the original" in html


def test_what_may_not_be_quoted_offers_nothing(ann: User, bob: User) -> None:
    said = say(bob, quotable_by=QuotableBy.NOBODY)
    assert "quote_of" not in page(ann, f"/items/{said.pk}/menu")
    assert "quote_of" in page(bob, f"/items/{said.pk}/menu")
    page(ann, f"/items/new?quote_of={said.pk}", 302)
    assert "allow you to quote" in page(ann, "/items/new", 422, text="words", visibility="public", quote_of=said.pk)
    assert not Item.objects.filter(sender=ann).exists()
    block(blocker=bob, blocked=ann)
    page(ann, f"/items/new?quote_of={said.pk}", 404)
    page(ann, "/items/new", 404, text="words", visibility="public", quote_of=said.pk)


def test_a_quote_that_is_not_seen_says_so(ann: User, said: Item) -> None:
    quote = publish(sender=ann, content={"text": "look"}, quote_of=said)
    Item.objects.filter(pk=said.pk).update(visibility=Visibility.SELF)
    html = page(ann, f"/items/{quote.pk}")
    assert MISSING in html
    assert "the original" not in html


def test_a_quote_inside_a_quote_is_named(ann: User, carol: User, said: Item) -> None:
    second = publish(sender=ann, content={"text": "second"}, quote_of=said)
    third = publish(sender=carol, content={"text": "third"}, quote_of=second)
    html = page(carol, f"/items/{third.pk}")
    assert "second" in html
    assert "the original" not in html
    assert f'<a href="/items/{said.pk}">Quotes another post</a>' in html


def test_the_author_takes_a_quote_off(ann: User, bob: User, carol: User, said: Item) -> None:
    quote = publish(sender=ann, content={"text": "look"}, quote_of=said)
    again, _ = repost(sender=carol, item=quote)
    assert "<b>1</b> quote<" in page(None, f"/items/{said.pk}")
    assert "look" in page(None, f"/items/{said.pk}/quotes")
    assert "revoke-quote" in page(bob, f"/items/{again.pk}/menu")
    for other in (ann, carol):
        assert "revoke-quote" not in page(other, f"/items/{quote.pk}/menu")
        page(other, f"/items/{quote.pk}/revoke-quote", 404, next="/")
    page(bob, f"/items/{quote.pk}/revoke-quote", 302, next="/")
    html = page(carol, f"/items/{quote.pk}")
    assert "look" in html
    assert MISSING in html
    assert "No quotes yet." in page(bob, f"/items/{said.pk}/quotes")


def test_ones_own_post_for_few_is_quoted_for_few(ann: User, bob: User) -> None:
    said = say(ann, visibility=Visibility.FOLLOWERS)
    html = page(ann, f"/items/new?quote_of={said.pk}")
    assert re.search(r'value="followers"[^>]* checked', html)
    assert "Choose fewer people" in page(ann, "/items/new", 422, text="me", visibility="public", quote_of=said.pk)
    page(ann, "/items/new", 302, text="me", visibility="followers", quote_of=said.pk)
    quote = Item.objects.get(quote_of=said)
    assert "Choose fewer people" in page(ann, f"/items/{quote.pk}/edit", 422, text="changed", visibility="public")
    quote.refresh_from_db()
    assert (quote.text, quote.visibility) == ("me", "followers")


def test_a_private_mention_is_not_offered_to_its_sender(ann: User, bob: User) -> None:
    said = say(ann, "@bob", visibility=Visibility.MENTIONED)
    assert "quote_of" not in page(ann, f"/items/{said.pk}/menu")
    assert "data-unquotable" in page(ann, f"/items/{said.pk}")
    page(ann, f"/items/new?quote_of={said.pk}", 302)
    page(ann, "/items/new", 422, text="mine", visibility="self", quote_of=said.pk)


def test_the_choice_is_made_in_the_composer_and_the_editor_and_by_default(ann: User) -> None:
    fields = {"language": "", "time_zone": "", "is_indexable": "on", "theme": ""}
    page(ann, "/settings/preferences", 302, quotable_by="followers", **fields)
    page(ann, "/items/new", 302, text="one", visibility="public")
    page(ann, "/items/new", 302, text="two", visibility="public", quotable_by="nobody")
    one, two = Item.objects.order_by("pk")
    assert (one.quotable_by, two.quotable_by) == ("followers", "nobody")
    page(ann, f"/items/{one.pk}/edit", 302, text="one", visibility="public", quotable_by="everyone")
    one.refresh_from_db()
    assert one.quotable_by == "everyone"


def test_the_quoted_author_is_told_on_the_page(ann: User, bob: User, said: Item) -> None:
    publish(sender=ann, content={"text": "look"}, quote_of=said)
    html = page(bob, "/notifications")
    assert "quoted you" in html
    assert "the original" in html


def test_a_quote_over_the_api(api: APIClient, ann: User, bob: User, said: Item) -> None:
    fields = {"content": {"text": "look"}, "quote_of": str(said.pk), "quotable_by": "followers"}
    answer = api.post("/api/v1/items", fields, format="json")
    assert answer.status_code == 201, answer.content
    item = answer.json()
    assert item["quotable_by"] == "followers"
    assert (item["quote"]["id"], item["quote"]["state"]) == (str(said.pk), "accepted")
    assert item["quote"]["item"]["content"] == {"text": "the original"}
    assert api.get(f"/api/v1/items/{said.pk}").json()["quote"] is None
    assert api.get(f"/api/v1/items/{said.pk}").json()["counts"]["quotes"] == 1
    assert [one["id"] for one in api.get(f"/api/v1/items/{said.pk}/quotes").json()["items"]] == [item["id"]]
    changed = api.patch(f"/api/v1/items/{item['id']}", {"quotable_by": "nobody"}, format="json").json()
    assert (changed["quotable_by"], changed["modified_at"]) == ("nobody", item["modified_at"])
    block(blocker=bob, blocked=ann)
    assert api.get(f"/api/v1/items/{item['id']}").json()["quote"] == {
        "id": str(said.pk),
        "item": None,
        "state": "unauthorized",
    }


def test_a_quote_that_is_not_allowed(api: APIClient, ann: User, bob: User) -> None:
    closed = say(bob, quotable_by=QuotableBy.NOBODY)
    follow(follower=ann, followee=bob)
    private = say(bob, visibility=Visibility.FOLLOWERS)
    mention = say(bob, "@ann", visibility=Visibility.MENTIONED)
    own = [say(ann, "@bob", visibility=audience) for audience in Visibility.values if audience != Visibility.PUBLIC]
    for item in (closed, private, mention, *own):
        fields: dict[str, Any] = {"content": {"text": "x"}, "quote_of": str(item.pk)}
        later = {"publish_at": (timezone.now() + timedelta(hours=1)).isoformat()}
        for address, body in (("items", fields), ("me/scheduled", fields | later)):
            answer = api.post(f"/api/v1/{address}", body, format="json")
            assert (answer.status_code, answer.json()["code"]) == (403, "not_quotable")
    Item.objects.filter(sender=ann).update(status="deleted")
    hidden = say(bob, visibility=Visibility.SELF)
    for item_id in (hidden.pk, 7):
        answer = api.post("/api/v1/items", {"content": {"text": "x"}, "quote_of": str(item_id)}, format="json")
        assert answer.status_code == 404
    for odd in ("x", -1, 0, 1.5, [], str(2**60)):
        answer = api.post("/api/v1/items", {"content": {"text": "x"}, "quote_of": odd}, format="json")
        assert answer.status_code == 400
    answer = api.post("/api/v1/items", {"content": {"text": "x"}, "quotable_by": "me"}, format="json")
    assert answer.status_code == 400
    assert (
        api.post("/api/v1/items", {"content": {"text": " "}, "quote_of": str(say(bob).pk)}, format="json").status_code
        == 400
    )
    assert not Item.objects.filter(sender=ann, status="published").exists()


def test_a_quote_is_taken_off_over_the_api(api: APIClient, ann: User, bob: User, carol: User, said: Item) -> None:
    own = say(ann, "mine")
    quote, other = (publish(sender=bob, content={"text": "q"}, quote_of=one) for one in (own, said))
    block(blocker=bob, blocked=ann)
    for address in (
        f"/api/v1/items/{said.pk}/quotes/{other.pk}",
        f"/api/v1/items/{own.pk}/quotes/{other.pk}",
        f"/api/v1/items/{own.pk}/quotes/{said.pk}",
        f"/api/v1/items/{own.pk}/quotes/x",
    ):
        assert api.delete(address).status_code == 404
    for _ in range(2):
        assert api.delete(f"/api/v1/items/{own.pk}/quotes/{quote.pk}").status_code == 204
    quote.refresh_from_db()
    other.refresh_from_db()
    assert (quote.is_quote_revoked, other.is_quote_revoked) == (True, False)


def test_the_default_over_the_api(api: APIClient) -> None:
    assert api.get("/api/v1/users/me").json()["quotable_by"] == "everyone"
    assert api.patch("/api/v1/users/me", {"quotable_by": "nobody"}, format="json").json()["quotable_by"] == "nobody"
    assert api.patch("/api/v1/users/me", {"quotable_by": "x"}, format="json").status_code == 400
    assert api.post("/api/v1/items", {"content": {"text": "x"}}, format="json").json()["quotable_by"] == "nobody"
