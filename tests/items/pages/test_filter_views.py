import pytest
from django.test import Client

from accounts.models import User
from items.filters import filters
from items.models import Filter
from relations import actions as relations
from tests.support.factories import UserFactory, say
from tests.support.pages import PART

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def reader(client: Client, author: User) -> User:
    reader = UserFactory(username="reader")
    relations.follow(follower=reader, followee=author)
    client.force_login(reader)
    return reader


def add(owner: User, phrase: str, action: str = "warn") -> Filter:
    return filters.create(owner=owner, phrase=phrase, whole_word=True, action=action)


def test_a_filter_is_made_changed_and_deleted(client: Client, reader: User) -> None:
    form = {"phrase": " zebra ", "action": "hide", "lasts": "7"}
    assert client.post("/settings/filters", form)["Location"] == "/settings/filters"
    made = Filter.objects.get()
    assert (made.phrase, made.action, made.whole_word) == ("zebra", "hide", False)
    assert made.expires_at
    assert "zebra" in client.get("/settings/filters").content.decode()
    address = f"/settings/filters/{made.pk}"
    assert "zebra</textarea>" in client.get(address).content.decode()
    client.post(address, {"phrase": "giraffe", "whole_word": "on", "action": "warn", "lasts": "keep"})
    changed = Filter.objects.get()
    assert (changed.phrase, changed.whole_word, changed.expires_at) == ("giraffe", True, made.expires_at)
    client.post(address, {"phrase": "giraffe", "action": "warn", "lasts": "0"})
    assert Filter.objects.get().expires_at is None
    assert client.get(f"{address}/delete").status_code == 405
    client.post(f"{address}/delete")
    assert not Filter.objects.exists()


@pytest.mark.slow
def test_bad_forms_and_the_limit_are_told(client: Client, reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    good = {"phrase": "zebra", "action": "warn", "lasts": "0"}
    for bad in ({"phrase": ""}, {"phrase": "\u200b"}, {"phrase": "x" * 51}, {"action": "x"}, {"lasts": "9"}):
        assert client.post("/settings/filters", good | bad).status_code == 422
    made = add(reader, "giraffe")
    assert client.post(f"/settings/filters/{made.pk}", good | {"phrase": ""}).status_code == 422
    monkeypatch.setattr(filters, "FILTERS", 1)
    refused = client.post("/settings/filters", good)
    assert "the limit of muted words" in refused.content.decode()


def test_others_meet_no_filter(client: Client, reader: User, author: User) -> None:
    made = add(author, "secret")
    for number in (made.pk, 2**62, 10**30):
        assert client.get(f"/settings/filters/{number}").status_code == 404
        assert client.post(f"/settings/filters/{number}/delete").status_code == 404
    assert "secret" not in client.get("/settings/filters").content.decode()
    client.logout()
    assert client.get("/settings/filters")["Location"].startswith("/login")


@pytest.mark.slow
def test_warned_items_are_folded_and_hidden_ones_left_out(client: Client, reader: User, author: User) -> None:
    add(reader, "zebra")
    add(reader, "giraffe", "hide")
    zebra, giraffe = say(author, "a zebra"), say(author, "a giraffe")
    for address in ("/", "/@author"):
        page = client.get(address)
        text = page.content.decode()
        assert [card.item.id for card in page.context["cards"]] == [str(zebra.pk)], address
        assert [item.id for item in page.context["page"].items] == [str(giraffe.pk), str(zebra.pk)], address
        assert text.count('<details class="warned filtered">') == 1
        assert "a giraffe" not in text
    page = client.get(f"/items/{giraffe.pk}").content.decode()
    assert '<details class="warned filtered">' in page, "on its own page it is folded"
    assert "<title>@author" not in page
    assert "a giraffe" not in page.partition("</title>")[0]
    assert "filtered" in client.get(f"/items/{giraffe.pk}", **PART).content.decode()
    client.force_login(author)
    assert "filtered" not in client.get(f"/items/{giraffe.pk}").content.decode()


@pytest.mark.slow
def test_threads_keep_what_is_answered(client: Client, reader: User, author: User) -> None:
    add(reader, "giraffe", "hide")
    root = say(author, "a giraffe")
    answer = say(author, "an answer", reply_to=root)
    hidden = say(author, "another giraffe", reply_to=root)
    page = client.get(f"/items/{answer.pk}")
    assert [card.item.id for card in page.context["above"]] == [str(root.pk)]
    assert f'id="item-{hidden.pk}"' not in client.get(f"/items/{root.pk}").content.decode()


def test_notifications_quote_nothing_that_is_filtered(client: Client, reader: User, author: User) -> None:
    add(reader, "zebra")
    say(author, "hello @reader, a zebra")
    page = client.get("/notifications").content.decode()
    assert "Muted word: zebra" in page
    assert "hello" not in page


def test_a_filter_has_several_phrases_and_places(client: Client, reader: User) -> None:
    form = {"phrase": "zebra\r\n okapi \r\nzebra", "action": "warn", "lasts": "0", "contexts": ["home", "thread"]}
    assert client.post("/settings/filters", form).status_code == 302
    (made,) = filters.filters_of(reader)
    assert (made.phrases, made.contexts) == (["zebra", "okapi"], ["home", "thread"])
    page = client.get("/settings/filters").content.decode()
    assert "okapi" in page
    kept = made.keywords[1].id
    changed = form | {"phrase": "okapi\ngiraffe", "contexts": []}
    assert client.post(f"/settings/filters/{made.id}", changed).status_code == 302
    (after,) = filters.filters_of(reader)
    assert (after.id, after.phrases, len(after.contexts)) == (made.id, ["okapi", "giraffe"], 5)
    assert after.keywords[0].id == kept
    client.post(f"/settings/filters/{made.id}/delete")
    assert not Filter.objects.exists()
