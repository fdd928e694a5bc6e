import pytest
from django.test import Client

from accounts.models import User
from relations import tags
from relations.tags import follow_tag, followed_tags_page
from tests.support.factories import UserFactory, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    return UserFactory(username="ann", level=3)


@pytest.fixture
def page(client: Client, user: User) -> Client:
    client.force_login(user)
    return client


def text(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def followed(user: User) -> list[str]:
    return [tag.name for tag in followed_tags_page(user).tags]


def test_the_page_of_a_hashtag_follows_it(page: Client, user: User) -> None:
    assert 'action="/tags/tea/follow"' in text(page, "/tags/tea")
    response = page.post("/tags/Tea/follow")
    assert (response.status_code, response["Location"]) == (302, "/tags/tea")
    assert followed(user) == ["tea"]
    assert 'action="/tags/tea/unfollow"' in text(page, "/tags/tea")
    response = page.post("/tags/tea/unfollow", {"next": "/lists"})
    assert response["Location"] == "/lists"
    assert followed(user) == []


def test_strangers_have_no_button(client: Client) -> None:
    assert "/tags/tea/follow" not in text(client, "/tags/tea")
    assert client.post("/tags/tea/follow")["Location"].startswith("/login")


def test_what_is_no_hashtag_is_not_found(page: Client, user: User) -> None:
    assert page.post("/tags/123/follow").status_code == 404
    assert page.get("/tags/tea/follow").status_code == 405
    assert followed(user) == []


def test_the_cap_is_told(page: Client, user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tags, "TAGS", 1)
    follow_tag(user=user, tag="milk")
    assert (
        "reached the limit of followed hashtags. Unfollow one first."
        in page.post("/tags/tea/follow", follow=True).content.decode()
    )
    assert followed(user) == ["milk"]


def test_the_lists_have_those_that_one_follows(page: Client, user: User) -> None:
    assert "Follow a hashtag on its page." in text(page, "/lists")
    follow_tag(user=user, tag="tea")
    follow_tag(user=user, tag="茶")
    shown = text(page, "/lists")
    assert 'action="/tags/tea/unfollow"' in shown
    assert "<bdi>#茶</bdi>" in shown
    assert "Follow a hashtag on its page." not in shown


def test_home_says_by_which_hashtag_a_post_is_there(page: Client, user: User) -> None:
    follow_tag(user=user, tag="tea")
    say(UserFactory(username="ben"), "some #tea")
    shown = text(page, "/")
    assert shown.count('<p class="via"><a href="/tags/tea"><bdi>#tea</bdi></a></p>') == 1
    assert '<p class="via"' not in text(page, "/tags/tea")
