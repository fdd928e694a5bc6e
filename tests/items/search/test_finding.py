# ruff: noqa: RUF001 - full-width signs are meant
from collections.abc import Callable
from urllib.parse import quote

import pytest
from django.test import Client
from pytest_django import Settings
from rest_framework.test import APIClient

from accounts.models import User
from items import actions
from items.models import Visibility
from relations import actions as relations
from tests.support.api import API, client_of
from tests.support.factories import UserFactory, say
from tests.support.pages import PART, logged_in
from tests.support.statements import statements
from tests.support.texts import PAYLOADS

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return UserFactory.create(username="ann", display_name="安安")


def test_search_answers_items_and_users(ann: User) -> None:
    items = [say(ann, f"apple {number}") for number in range(3)]
    say(ann, "pear")
    first = APIClient().get(f"{API}/search?q=apple&limit=2").json()
    assert [item["id"] for item in first["items"]] == [str(items[2].pk), str(items[1].pk)]
    assert (first["users"], first["last_id"], first["has_more"]) == ([], str(items[1].pk), True)
    rest = APIClient().get(f"{API}/search?q=apple&limit=2&last_id={first['last_id']}").json()
    assert [item["id"] for item in rest["items"]] == [str(items[0].pk)]
    assert rest["has_more"] is False
    card = {"id": str(ann.pk), "username": "ann", "display_name": "安安", "is_big_v": False}
    card["avatar_url"] = ann.avatar_url
    assert APIClient().get(f"{API}/search", {"q": "安安"}).json() == {
        "items": [], "users": [card], "last_id": None, "has_more": False,
    }  # fmt: skip
    assert APIClient().get(f"{API}/search?q=ann&last_id=5").json()["users"] == []


@pytest.mark.parametrize(
    "query", ["", "q=", "q=%20%09", "q=a&q=b", "q=a%00", "q=" + "a" * 201, "q=a&limit=0", "q=a&last_id=abc"]
)
def test_bad_searches(query: str) -> None:
    response = APIClient().get(f"{API}/search?{query}")
    assert response.status_code == 400
    assert response["Content-Type"].startswith("application/json")


@pytest.mark.parametrize(
    "query", ["!?", "%ff", "'", "\\", "&|!()<>:*", "a:*b", "''", "$$", "小" * 200, "🎉", '"', "%25_"]
)
def test_odd_searches(ann: User, query: str) -> None:
    say(ann, "words")
    response = APIClient().get(f"{API}/search?q={query if query[0] == '%' else quote(query)}")
    assert response.status_code == 200
    assert response.json()["items"] == []


def test_searches_have_a_rate_of_their_own(ann: User, settings: Settings) -> None:
    settings.RATES = settings.RATES | {"search": "2/minute"}
    api = client_of(ann)
    assert [api.get(f"{API}/search?q=a").status_code for _ in range(3)] == [200, 200, 429]
    client = logged_in(ann)
    assert client.get("/search?q=a").status_code == 429
    assert client.get("/search").status_code == api.get(f"{API}/users/ann").status_code == 200


def test_items_of_a_tag(ann: User) -> None:
    root = say(ann, "#Django one")
    reply = say(ann, "two #django", reply_to=root)
    actions.repost(sender=ann, item=root)
    say(ann, "django")
    for tag in ("django", "DJANGO", "ｄｊａｎｇｏ"):
        page = APIClient().get(f"{API}/tags/{tag}/items").json()
        assert [item["id"] for item in page["items"]] == [str(reply.pk), str(root.pk)]
    page = APIClient().get(f"{API}/tags/django/items?limit=1").json()
    assert (page["last_id"], page["has_more"]) == (str(reply.pk), True)
    page = APIClient().get(f"{API}/tags/django/items?limit=1&last_id={reply.pk}").json()
    assert ([item["id"] for item in page["items"]], page["has_more"]) == ([str(root.pk)], False)
    assert APIClient().get(f"{API}/tags/nothing/items").json() == {"items": [], "last_id": None, "has_more": False}
    for no_tag in ("123", "a-b", "%23a", "a" * 101, "a%00"):
        assert APIClient().get(f"{API}/tags/{no_tag}/items").status_code == 404
    assert APIClient().get(f"{API}/tags/django/items?limit=abc").status_code == 400


READERS: dict[str, Callable[[User, User], object]] = {
    "stranger": lambda reader, sender: None,
    "follower": lambda reader, sender: relations.follow(follower=reader, followee=sender),
    "mutual": lambda reader, sender: (
        relations.follow(follower=reader, followee=sender), relations.follow(follower=sender, followee=reader)),
    "blocked": lambda reader, sender: relations.block(blocker=sender, blocked=reader),
    "blocking": lambda reader, sender: relations.block(blocker=reader, blocked=sender),
    "muting": lambda reader, sender: relations.mute(muter=reader, muted=sender),
}  # fmt: skip
SEES = {
    "stranger": {"public"},
    "follower": {"public", "followers"},
    "mutual": {"public", "followers", "mutuals"},
    "blocked": set(),
    "blocking": set(),
    "muting": {"public"},
}


@pytest.mark.slow
@pytest.mark.parametrize("standing", READERS)
def test_readers_find_what_they_may_see(ann: User, standing: str) -> None:
    reader = UserFactory.create()
    UserFactory.create(username="third")
    READERS[standing](reader, ann)
    for visibility in Visibility.values:
        say(ann, f"secret #secret {visibility} @{reader.username} @third", visibility=visibility)
    api = client_of(reader)
    for path in ("/search?q=secret", "/search?q=%23secret", "/search?q=from:ann", "/tags/secret/items"):
        items = api.get(f"{API}{path}").json()["items"]
        assert {item["visibility"] for item in items} == SEES[standing]
    assert {item["visibility"] for item in APIClient().get(f"{API}/search?q=secret").json()["items"]} == {"public"}
    assert len(client_of(ann).get(f"{API}/search?q=secret").json()["items"]) == 4


@pytest.mark.slow
def test_the_search_page(client: Client, ann: User) -> None:
    for number in range(25):
        say(ann, f"apple & ann {number}")
    empty = client.get("/search").content.decode()
    assert "Try searching for" in empty
    assert 'href="/search?q=from:alice"' in empty
    page = client.get("/search?q=apple+ann").content.decode()
    assert page.count("<article") == 20
    assert "<mark>apple</mark> &amp; <mark>ann</mark> 24" in page
    assert 'href="/search?q=apple+ann&amp;last_id=' in page
    last_id = page.split("last_id=")[1].split('"')[0]
    part = client.get(f"/search?q=apple+ann&last_id={last_id}", **PART).content.decode()
    assert part.count("<article") == 5
    assert "<mark>apple</mark>" in part
    assert "<html" not in part
    whole = client.get(f"/search?q=apple+ann&last_id={last_id}").content.decode()
    assert whole.count("<article") == 5
    assert "安安" in client.get("/search?q=安").content.decode()
    nothing = client.get("/search?q=%3Cb%3E+zebra").content.decode()
    assert "No results for “<bdi>&lt;b&gt; zebra</bdi>”" in nothing


@pytest.mark.slow
def test_people_come_first_and_more_of_them_on_their_own_page(client: Client, ann: User) -> None:
    for number in range(7):
        UserFactory.create(username=f"sam-{number}")
    say(ann, "sam")
    client.force_login(ann)
    page = client.get("/search?q=sam").content.decode()
    assert page.count('id="standing-sam-') == 5
    assert page.index('id="standing-sam-') < page.index("<article")
    assert 'href="/search?q=sam&amp;show=people"' in page
    people = client.get("/search?q=sam&show=people").content.decode()
    assert people.count('id="standing-sam-') == 7
    assert "<article" not in people
    posts = client.get("/search?q=sam&show=posts").content.decode()
    assert 'id="standing-sam-' not in posts
    assert posts.count("<article") == 1


@pytest.mark.parametrize(
    ("query", "status"),
    [("q=a&q=b", 400), ("q=a%00", 400), ("q=a&last_id=x", 400), ("q=" + "a" * 201, 422), ("q=", 200), ("q=%20", 200)],
)
def test_bad_searches_as_pages(client: Client, query: str, status: int) -> None:
    assert client.get(f"/search?{query}").status_code == status


@pytest.mark.slow
def test_the_tag_page(client: Client, ann: User) -> None:
    for number in range(21):
        say(ann, f"#小事# {number}")
    assert client.get("/tags/Django")["Location"] == "/tags/django"
    page = client.get("/tags/小事").content.decode()
    assert "<h1><bdi>#小事</bdi></h1>" in page
    assert page.count("<article") == 20
    last_id = page.split("last_id=")[1].split('"')[0]
    assert client.get(f"/tags/小事?last_id={last_id}", **PART).content.decode().count("<article") == 1
    assert client.get("/tags/12").status_code == client.get("/tags/a.b").status_code == 404


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_gets_out_of_the_pages(client: Client, ann: User, payload: str) -> None:
    say(ann, f"{payload} #tag", title=payload)
    for page in (
        client.get("/search", {"q": payload}),
        client.get("/tags/tag"),
        client.get("/search", {"q": "alert tag"}),
    ):
        text = page.content.decode()
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert 'onmouseover="' not in text
        assert 'href="javascript:' not in text


@pytest.mark.slow
def test_statements_do_not_grow_with_what_is_found(client: Client, ann: User) -> None:
    counts = []
    for _ in range(2):
        for number in range(8):
            say(ann, f"apple {number} #apple")
            UserFactory.create(username=f"apple-{len(counts)}-{number}")
        with statements() as sent:
            client.get("/search?q=apple")
        with statements() as tagged:
            client.get("/tags/apple")
        counts.append((len(sent), len(tagged)))
    assert counts[0] == counts[1]


def test_a_profile_leads_to_a_search_of_its_posts(client: Client, db: None) -> None:
    sam, other = UserFactory(username="sam"), UserFactory(username="other")
    say(sam, "apples of mine")
    say(other, "apples too, @sam")
    address = "/search?q=from:@sam&amp;show=posts"
    assert f'href="{address}" title="Search posts by @sam"' in client.get("/@sam").content.decode()
    page = client.get(address.replace("&amp;", "&")).content.decode()
    assert 'value="from:@sam " maxlength' in page
    assert "of mine" in page
    assert "apples too" not in page
    assert "No results" in client.get("/search?q=from:@sam+pears&show=posts").content.decode()
