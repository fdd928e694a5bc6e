import re
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.about import members_only, site
from accounts.about.models import PublicAccess
from tests.support.addresses import api_patterns, page_names
from tests.support.api import API, client_of
from tests.support.factories import ItemFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _for_members() -> None:
    site.site_copy.set(site.Site(looking=PublicAccess.MEMBERS))


def test_strangers_find_no_search_and_no_column_that_would_lead_them_away(client: Client) -> None:
    page = client.get("/login").content.decode()
    assert "Only members can see them" in page
    assert 'id="side-q"' not in page
    assert 'id="beside"' not in page
    client.force_login(UserFactory())
    page = client.get("/about").content.decode()
    assert 'id="side-q"' in page
    assert 'id="beside"' in page


def test_the_composer_says_who_sees_a_public_post(client: Client) -> None:
    client.force_login(UserFactory())
    page = client.get("/items/new").content.decode()
    assert "Everyone on this site." in page
    assert "even without an account" not in page
    site.site_copy.set(site.Site())
    page = client.get("/items/new").content.decode()
    assert "Anyone can see it, even without an account." in page
    assert "Everyone on this site." not in page


def test_home_lets_its_script_say_who_sees_a_public_post(client: Client) -> None:
    client.force_login(UserFactory())
    assert 'data-short="Everyone on this site."' in client.get("/").content.decode()
    site.site_copy.set(site.Site())
    assert 'data-short="Anyone can see it, even without an account."' in client.get("/").content.decode()


@pytest.mark.parametrize(
    "address", ["/@ann", "/items/{item}", "/search?q=word", "/tags/word", "/@ann/followers", "/@nobody"]
)
def test_strangers_are_led_to_the_sign_in(client: Client, address: str) -> None:
    item = ItemFactory(sender=UserFactory(username="ann"))
    path = address.format(item=item.pk)
    response = client.get(path)
    assert response.status_code == 302
    assert response.headers["Location"].startswith("/login?next=")
    assert client.get(path, headers={"HX-Request": "true"}).status_code == 401
    client.force_login(UserFactory())
    assert client.get(path).status_code in (200, 404)


@pytest.mark.parametrize("address", ["/about", "/login", "/signup", "/signup/waiting", "/invite/code", "/api/schema"])
def test_some_pages_are_open_on_every_site(client: Client, address: str) -> None:
    assert client.get(address).status_code == 200


@pytest.mark.slow
def test_no_address_of_the_api_answers_a_stranger() -> None:
    ItemFactory(sender=UserFactory(username="ann"))
    names = {"username": "ann", "item_id": "1", "tag": "word", "session_id": "1", "media_id": "1"}
    answered = set()
    for route in api_patterns:
        if not hasattr(route.callback.cls, "get"):
            continue
        path = str(route.pattern)
        for name, value in names.items():
            path = re.sub(rf"<\w+:{name}>", value, path)
        response: Any = APIClient().get(f"{API}/{path}")
        if response.status_code != 401:
            answered.add(path)
    assert answered == {"site"}


def test_members_read_over_the_api() -> None:
    ann = UserFactory(username="ann")
    client = client_of(ann)
    assert client.get(f"{API}/users/ann").status_code == 200
    session = APIClient()
    session.force_login(ann)
    assert session.get(f"{API}/users/ann").status_code == 200


def test_a_site_for_everybody_shows_its_profiles(client: Client) -> None:
    site.site_copy.set(site.Site())
    UserFactory(username="ann")
    assert client.get("/@ann").status_code == 200
    assert APIClient().get(f"{API}/users/ann").status_code == 200


def test_the_list_of_open_pages_is_of_now() -> None:
    assert {*page_names, "schema", "docs"} >= members_only.OPEN
