import re

import pytest
from django.test import Client

from accounts.models import User
from items import actions as items
from items.models import Visibility
from relations import actions as relations
from relations import lists
from tests.support.factories import UserFactory, say
from tests.support.pages import PART

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def friend() -> User:
    return UserFactory(username="friend")


@pytest.fixture
def reader(client: Client, friend: User) -> User:
    reader = UserFactory(username="reader")
    relations.follow(follower=reader, followee=friend)
    client.force_login(reader)
    return reader


@pytest.fixture
def there(reader: User, friend: User) -> int:
    made = lists.create(owner=reader, title="Friends", is_exclusive=True)
    lists.add(owner=reader, list_id=made.pk, member=friend)
    return made.pk


@pytest.mark.slow
def test_the_page_and_what_came_since(client: Client, friend: User, there: int) -> None:
    say(friend, "zebra")
    page = client.get(f"/lists/{there}").content.decode()
    assert "zebra" in page
    assert "zebra" not in client.get("/").content.decode()
    asked = re.search(rf'hx-get="(/lists/{there}/new[^"]+)"', page)
    assert asked
    assert "data-list" in page
    address = asked[1].replace("&amp;", "&")
    assert client.get(address).status_code == 204
    say(friend, "giraffe")
    part = client.get(address).content.decode()
    assert "1 new post<" in part
    assert f'hx-get="/lists/{there}?late=' in part
    beginning = client.get(f"/lists/{there}", **PART).content.decode()
    assert "giraffe" in beginning
    assert 'hx-swap-oob="true"' in beginning


@pytest.mark.slow
def test_posts_that_arrive_late_count_as_new_and_are_marked(
    client: Client, reader: User, friend: User, there: int
) -> None:
    """It keeps its id's place, below the top of the open page."""
    narrow = items.publish(sender=friend, content={"text": "okapi"}, visibility=Visibility.SELF)
    say(friend, "zebra")
    page = client.get(f"/lists/{there}").content.decode()
    asked = re.search(rf'hx-get="(/lists/{there}/new[^"]+)"', page)
    assert asked
    address = asked[1].replace("&amp;", "&")
    assert client.get(address).status_code == 204
    items.change_visibility(item=narrow, visibility=Visibility.PUBLIC)
    part = client.get(address).content.decode()
    assert "1 new post<" in part
    link = re.search(rf'hx-get="(/lists/{there}\?late=\d+)"', part)
    assert link
    fresh = client.get(link[1], **PART)
    assert [card.item.id for card in fresh.context["cards"] if card.is_late] == [str(narrow.pk)]
    other = lists.create(owner=reader, title="Without them").pk
    assert client.get(f"/lists/{other}/new?{address.partition('?')[2]}").status_code == 204


@pytest.mark.slow
def test_pages_go_on(client: Client, friend: User, there: int) -> None:
    ids = [say(friend, f"word{number}").pk for number in range(21)]
    first = client.get(f"/lists/{there}")
    assert first.context["page"].has_more
    rest = client.get(f"/lists/{there}?last_id={first.context['page'].last_id}", **PART)
    assert [card.item.id for card in rest.context["cards"]] == [str(ids[0])]


def test_empty_lists_lead_on(client: Client, reader: User, friend: User, there: int) -> None:
    assert "haven't posted anything yet" in client.get(f"/lists/{there}").content.decode()
    relations.unfollow(follower=reader, followee=friend)
    page = client.get(f"/lists/{there}").content.decode()
    assert "This list is empty." in page
    assert 'href="/@reader/following"' in page


@pytest.mark.slow
def test_others_meet_no_list(client: Client, friend: User, there: int) -> None:
    client.force_login(friend)
    for address in (f"/lists/{there}", f"/lists/{there}/new", f"/lists/{2**62}", f"/lists/{10**30}/new"):
        assert client.get(address).status_code == 404
    client.logout()
    assert client.get(f"/lists/{there}")["Location"].startswith("/login")
