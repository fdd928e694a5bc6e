import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from accounts.models import User
from items.link_cards import actions as link_cards
from items.models import Item, LinkCard, RefusedHost
from moderation.models import Decision, Verb
from moderation.sentences import sentence
from tests.support.admin import text
from tests.support.factories import say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

CARDS, HOSTS = "/admin/items/linkcard/", "/admin/items/refusedhost/"
URL = "https://bad.example/page"


@pytest.fixture
def desk(client: Client, moderator: User) -> Client:
    moderator.user_permissions.add(
        *Permission.objects.filter(content_type__app_label="items", codename__endswith="linkcard"),
        *Permission.objects.filter(content_type__app_label="items", codename__endswith="refusedhost"),
    )
    client.force_login(moderator)
    client.get("/settings")  # caches the session
    return client


@pytest.fixture
def card() -> LinkCard:
    facts = {"url": URL, "title": "A bad <page>", "description": "", "site": "Bad", "picture": None}
    return LinkCard.objects.create(url=URL, digest="1", domain="example.bad.", facts=facts)


@pytest.fixture
def item(sender: User, card: LinkCard) -> Item:
    item = say(sender, "no link")
    Item.objects.filter(pk=item.pk).update(link_card=card)
    return item


def log() -> list[str]:
    return [str(sentence(decision)) for decision in Decision.objects.order_by("pk")]


def test_a_card_in_the_admin(desk: Client, card: LinkCard) -> None:
    assert "A bad &lt;page&gt;" in text(desk.get(CARDS))
    assert "A bad &lt;page&gt;" in text(desk.get(f"{CARDS}{card.pk}/change/"))
    for sought, is_found in (
        ("bad.example", True),
        (URL, True),
        ("example", True),
        ("other.example", False),
        ("[", True),
    ):
        assert (URL in text(desk.get(CARDS, {"q": sought}))) == is_found, sought
    for _time in range(2):
        desk.post(CARDS, {"action": "remove", "_selected_action": [card.pk]})
    card.refresh_from_db()
    assert (card.is_removed, card.facts) == (True, None)
    assert log() == [f"@moderator removed the link preview of {URL}"]
    assert desk.get(f"{CARDS}add/").status_code == 403
    assert desk.post(f"{CARDS}{card.pk}/delete/").status_code == 403


def test_the_card_of_a_post(desk: Client, card: LinkCard, item: Item) -> None:
    address = f"/admin/moderation/case/act/?items={item.pk}"
    page = text(desk.post(address, {"verb": "uncard", "note": "spam"}, follow=True))
    assert "1 link preview removed." in page
    card.refresh_from_db()
    assert card.is_removed
    decision = Decision.objects.get()
    assert (decision.verb, decision.item_id, decision.user_id, decision.note) == (
        Verb.UNCARD,
        item.pk,
        item.sender_id,
        "spam",
    )
    assert "1 post has no link preview." in text(desk.post(address, {"verb": "uncard"}, follow=True))


def test_refused_hosts(desk: Client, card: LinkCard, monkeypatch: pytest.MonkeyPatch) -> None:
    enqueued: list[int] = []
    monkeypatch.setattr(link_cards.remove_refused, "delay", enqueued.append)
    assert "This isn&#39;t a domain" in text(desk.post(f"{HOSTS}add/", {"host": "http://[", "note": ""}))
    desk.post(f"{HOSTS}add/", {"host": " https://Bad.example/page ", "note": "spam"})
    host = RefusedHost.objects.get()
    assert host.host == "bad.example"
    assert enqueued == [host.pk]
    assert "exists" in text(desk.post(f"{HOSTS}add/", {"host": "bad.example", "note": ""}))
    desk.post(f"{HOSTS}{host.pk}/delete/", {"post": "yes"})
    assert not RefusedHost.objects.exists()
    assert log() == [
        "@moderator turned off previews of “bad.example”",
        "@moderator turned previews of “bad.example” back on",
    ]


def test_staff_without_a_permission(client: Client, card: LinkCard, moderator: User) -> None:
    client.force_login(moderator)
    client.get("/settings")
    for address in (CARDS, HOSTS, f"{HOSTS}add/"):
        assert client.get(address).status_code == 403
