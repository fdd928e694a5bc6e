"""The pages of items."""

import re
import uuid
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from items.actions import publish
from items.models import Item, Status
from items.templatetags.reading import ago
from items.text import TEXT_LENGTH
from relations.actions import block, follow
from tests.factories import UserFactory
from tests.statements import statements

pytestmark = pytest.mark.django_db

PART: Any = {"HTTP_HX_REQUEST": "true"}
PAYLOADS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "javascript:alert(1)",
    'https://example.org/"onmouseover="alert(1)',
    "{{ 7|add:7 }}{% now 'Y' %}",
    "</textarea><script>alert(1)</script>",
]


@pytest.fixture
def reader(client: Client) -> Any:
    reader = UserFactory.create(username="reader")
    client.force_login(reader)
    return reader


@pytest.fixture
def other() -> Any:
    return UserFactory.create(username="other")


def say(sender: Any, text: str = "words", **fields: Any) -> Item:
    return publish(sender=sender, content={"text": text}, **fields)


def composed(text: str = "words", **fields: Any) -> dict[str, Any]:
    return {"text": text, "visibility": "public", "key": uuid.uuid4().hex} | fields


# --- Publishing ------------------------------------------------------------------------------------------
def test_publishing_goes_on_to_the_item_or_back(client: Client, reader: Any) -> None:
    response = client.post("/items/new", composed("one\r\n\r\ntwo\rthree 中文"))
    item = Item.objects.get()
    assert response["Location"] == f"/items/{item.pk}"
    assert (item.sender, item.text, item.visibility) == (reader, "one\n\ntwo\nthree 中文", "public")
    assert client.post("/items/new", composed(next="/"))["Location"] == "/"


def test_publishing_in_place_gives_a_fresh_composer(client: Client, reader: Any) -> None:
    key = uuid.uuid4().hex
    response = client.post("/items/new", composed(key=key, visibility="mutuals"), **PART)
    assert response["HX-Trigger"] == '{"published": {}}'
    assert key not in response.content.decode()
    assert "words" not in response.content.decode()
    assert Item.objects.get().visibility == "mutuals"


def test_the_same_form_sent_twice_publishes_once(client: Client, reader: Any) -> None:
    fields = composed()
    for _ in range(2):
        client.post("/items/new", fields)
    assert Item.objects.count() == 1
    client.post("/items/new", fields | {"text": "changed after going back"})
    assert Item.objects.count() == 2


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"text": ""}, "Write something first."),
        ({"text": " \n "}, "Write something first."),
        ({"text": "字" * (TEXT_LENGTH + 1)}, "too long"),
        ({"text": "a\x00b"}, "Null characters"),
        ({"visibility": "everybody"}, "Select a valid choice"),
    ],
)
@pytest.mark.parametrize("headers", [{}, PART])
def test_what_cannot_be_published_is_shown_again(
    client: Client, reader: Any, fields: dict[str, str], words: str, headers: Any
) -> None:
    sent = composed(next="/") | fields
    response = client.post("/items/new", sent, **headers)
    page = response.content.decode()
    assert response.status_code == 422
    assert words in page
    assert sent["key"] in page
    assert ("<html" in page) is not bool(headers)
    assert not Item.objects.exists()


def test_text_of_full_length_passes(client: Client, reader: Any) -> None:
    client.post("/items/new", composed("字" * TEXT_LENGTH))
    assert len(Item.objects.get().text) == TEXT_LENGTH


def test_publishing_is_limited_together_with_the_api(client: Client, reader: Any, settings: Settings) -> None:
    settings.RATES = settings.RATES | {"publish": "2/minute"}
    assert client.get("/items/new").status_code == 200
    client.post("/api/v1/items", {"content": {"text": "one"}}, content_type="application/json")
    assert client.post("/items/new", composed()).status_code == 302
    response = client.post("/items/new", composed())
    assert response.status_code == 429
    assert int(response["Retry-After"]) > 0


# --- Replies ---------------------------------------------------------------------------------------------
def test_a_reply_is_found_where_it_stands(client: Client, reader: Any, other: Any) -> None:
    root = say(other, "root")
    response = client.post("/items/new", composed("first reply", reply_to=root.pk))
    reply = root.replies.get()
    assert response["Location"] == f"/items/{root.pk}#item-{reply.pk}"
    for _ in range(20):
        say(other, reply_to=root)
    response = client.post("/items/new", composed("last reply", reply_to=root.pk))
    page = client.get(response["Location"])
    assert [item.text for item in page.context["page"].items] == ["last reply"]
    assert "From the first reply" in page.content.decode()


def test_replies_are_listed_oldest_first(client: Client, reader: Any, other: Any) -> None:
    root = say(other, "root")
    for number in range(25):
        say(other, f"reply {number}", reply_to=root)
    first = client.get(f"/items/{root.pk}")
    rest = client.get(f"/items/{root.pk}", {"last_id": first.context["page"].last_id}, **PART)
    texts = [item.text for page in (first, rest) for item in page.context["page"].items]
    assert texts == [f"reply {number}" for number in range(25)]


def test_nobody_replies_to_what_they_do_not_see(client: Client, reader: Any, other: Any) -> None:
    hidden = say(other, visibility="self")
    for root in (hidden.pk, 7, -1, 10**30):
        assert client.post("/items/new", composed(reply_to=root)).status_code in (404, 422)
    assert Item.objects.count() == 1


# --- Reading ---------------------------------------------------------------------------------------------
def test_profiles_and_items_are_public(client: Client, other: Any) -> None:
    item = say(other, "for everybody")
    hidden = say(other, "for followers", visibility="followers")
    for address in ("/@other", f"/items/{item.pk}"):
        page = client.get(address).content.decode()
        assert "for everybody" in page
        assert "for followers" not in page
        assert "/items/new" not in page
    assert client.get(f"/items/{hidden.pk}").status_code == 404


def test_a_profile_is_paged_without_gap_or_repetition(client: Client, reader: Any, other: Any) -> None:
    items = [say(other, f"number {number}.") for number in range(45)]
    say(other, "a reply", reply_to=items[0])
    seen: list[str] = []
    last_id: str | None = ""
    part: Any = {}
    while last_id is not None:
        response = client.get("/@other", {"last_id": last_id}, **part)
        seen += re.findall(r"number (\d+)\.", response.content.decode())
        page = response.context["page"]
        last_id, part = (page.last_id if page.has_more else None), PART
        say(other, "one more meanwhile")
    assert seen == [str(number) for number in reversed(range(45))]


def test_whom_the_reader_blocks_is_shown_without_items(client: Client, reader: Any, other: Any) -> None:
    item = say(other, "unheard")
    block(blocker=reader, blocked=other)
    page = client.get("/@other").content.decode()
    assert "/@other/unblock" in page
    assert "unheard" not in page
    assert client.get(f"/items/{item.pk}").status_code == 404


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_that_people_write_becomes_markup(client: Client, reader: Any, payload: str) -> None:
    reader.display_name = payload[:50]
    reader.bio = payload
    reader.save()
    item = publish(
        sender=reader, type="link", title=payload, content={"text": payload, "url": f'https://example.org/"{payload}'}
    )
    follow(follower=UserFactory.create(username="other"), followee=reader)
    addresses = ["/", "/@reader", "/@other/following", "/settings"]
    addresses += [f"/items/{item.pk}{path}" for path in ("", "/edit", "/delete")]
    for address in addresses:
        page = client.get(address).content.decode()
        assert "alert(1)</script>" not in page
        assert "<img" not in page
        assert 'href="javascript' not in page
        assert 'onmouseover="' not in page
        assert "1414" not in page


def test_links_are_marked_as_not_ours(client: Client, other: Any) -> None:
    item = say(other, "see https://example.org/a_long_way?x=1&y=2\nand 再见")
    page = client.get(f"/items/{item.pk}").content.decode()
    assert '<a href="https://example.org/a_long_way?x=1&amp;y=2" rel="nofollow noopener ugc">' in page
    assert "</a>\nand 再见" in page


def test_times_are_readable_by_people_and_programs(client: Client, other: Any) -> None:
    item = say(other)
    page = client.get(f"/items/{item.pk}").content.decode()
    assert f'<time datetime="{item.created_at.isoformat()}' in page
    assert ago(item.created_at) == "now"


def test_profiles_and_items_cost_the_same_for_few_and_many(client: Client, reader: Any, other: Any) -> None:
    root = say(other)
    costs = []
    for count in (1, 15):
        for _ in range(count):
            say(other)
            say(UserFactory.create(), reply_to=root)
        for address in ("/@other", f"/items/{root.pk}"):
            with statements() as seen:
                client.get(address)
            costs.append(len(seen))
    assert costs[:2] == costs[2:]
    assert max(costs) <= 6  # session, user, whose profile, ids, bodies, how one stands


# --- Editing and deleting ----------------------------------------------------------------------------------
def test_editing_changes_the_text_and_keeps_the_rest(client: Client, reader: Any) -> None:
    item = publish(sender=reader, type="link", content={"text": "befor", "url": "https://example.org/", "extra": [1]})
    assert "befor" in client.get(f"/items/{item.pk}/edit").content.decode()
    assert client.post(f"/items/{item.pk}/edit", {"text": "before\r\nafter"})["Location"] == f"/items/{item.pk}"
    item.refresh_from_db()
    assert item.content == {"text": "before\nafter", "url": "https://example.org/", "extra": [1]}


def test_editing_in_place(client: Client, reader: Any) -> None:
    item = publish(sender=reader, title="A title", content={"text": "before"})
    address = f"/items/{item.pk}/edit"
    editor = client.get(address, **PART).content.decode()
    assert "<html" not in editor
    assert "A title" in editor
    response = client.post(address, {"title": "A title", "text": " "}, **PART)
    assert response.status_code == 422
    assert "must not be empty" in response.content.decode()
    part = client.post(address, {"title": "Another title", "text": "after"}, **PART).content.decode()
    assert part.count("<article") == 1
    assert "Another title" in part
    assert "after" in part
    cancelled = client.get(f"/items/{item.pk}", **PART).content.decode()
    assert cancelled.count("<article") == 1


def test_deleting_asks_first_and_hides(client: Client, reader: Any) -> None:
    item = say(reader, "regretted")
    address = f"/items/{item.pk}/delete"
    assert "regretted" in client.get(address).content.decode()
    assert Item.objects.get().status == Status.PUBLISHED
    assert "Deleted." in client.post(address, follow=True).content.decode()
    assert Item.objects.get().status == Status.DELETED
    nobody = client.get("/items/1").content
    for gone in (f"/items/{item.pk}", address, f"/items/{item.pk}/edit"):
        response = client.get(gone)
        assert (response.status_code, response.content) == (404, nobody)


def test_deleting_in_place_leaves_nothing(client: Client, reader: Any) -> None:
    item = say(reader)
    response = client.post(f"/items/{item.pk}/delete", **PART)
    assert (response.status_code, response.content) == (200, b"")
    assert Item.objects.get().status == Status.DELETED


@pytest.mark.parametrize("verb", ["edit", "delete"])
def test_only_the_sender_changes_an_item(client: Client, reader: Any, other: Any, verb: str) -> None:
    item, hidden = say(other), say(other, visibility="self")
    for method in (client.get, client.post):
        assert method(f"/items/{item.pk}/{verb}").status_code == 403
        assert method(f"/items/{hidden.pk}/{verb}").status_code == 404
    client.logout()
    assert client.get(f"/items/{item.pk}/{verb}")["Location"].startswith("/login")
    assert client.post(f"/items/{item.pk}/{verb}")["Location"] == "/login"
    assert Item.objects.filter(status=Status.PUBLISHED).count() == 2
