from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import User
from items import actions
from items.models import Item
from relations import actions as relations
from relations import people
from tests.support.answers import lasting
from tests.support.api import API, client_of
from tests.support.clients import Caller
from tests.support.factories import ItemFactory, UserFactory
from tests.support.pages import PART
from tests.support.statements import statements

pytestmark = pytest.mark.django_db
VERBS: dict[str, Any] = {
    "likes": lambda one, item: actions.like(user=one, item=item),
    "reposts": lambda one, item: actions.repost(sender=one, item=item),
}
OF_APPS = {"likes": "favourited_by", "reposts": "reblogged_by"}


@pytest.fixture
def api(reader: User) -> APIClient:
    return client_of(reader)


def walked(api: APIClient, item: Item, kind: str, limit: int) -> list[str]:
    found: list[str] = []
    last_id = ""
    for _ in range(50):
        page = api.get(f"{API}/items/{item.pk}/{kind}?limit={limit}{last_id}").json()
        found += [one["username"] for one in page["items"]]
        if not page["has_more"]:
            return found
        last_id = f"&last_id={page['last_id']}"
    raise AssertionError("the walk does not end")


@pytest.mark.parametrize("kind", VERBS)
@pytest.mark.parametrize("scan", [1, 500])
def test_each_is_listed_once_in_every_list(
    api: APIClient, reader: User, client: Client, kind: str, scan: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "SCAN", scan)
    item, others = ItemFactory(), UserFactory.create_batch(5)
    for one in [reader, *others]:
        VERBS[kind](one, item)
    UserFactory()
    User.objects.filter(pk=others[2].pk).update(is_active=False)
    expected = [others[place].username for place in (4, 3, 1, 0)] + ["reader"]
    for limit in (1, 2, 5, 20):
        assert walked(api, item, kind, limit) == expected
    repost, _ = actions.repost(sender=UserFactory(), item=item)
    assert walked(api, repost, kind, 20)[-5:] == expected
    if scan == 500:
        names = [one["username"] for one in Caller(reader).get(f"v1/statuses/{item.pk}/{OF_APPS[kind]}")]
        assert names[-5:] == expected
        client.force_login(reader)
        page = client.get(f"/items/{item.pk}/{kind}").content.decode()
        assert all(f'id="person-{name}"' in page for name in expected)
        assert f'id="person-{others[2].username}"' not in page


@pytest.mark.parametrize("kind", VERBS)
def test_whom_one_has_turned_away_is_in_no_list(api: APIClient, reader: User, kind: str) -> None:
    item = ItemFactory()
    blocked, blocking, muted, stays = UserFactory.create_batch(4)
    for one in (blocked, blocking, muted, stays):
        VERBS[kind](one, item)
    relations.block(blocker=reader, blocked=blocked)
    relations.block(blocker=blocking, blocked=reader)
    relations.mute(muter=reader, muted=muted)
    assert walked(api, item, kind, 20) == [stays.username]
    assert len(walked(APIClient(), item, kind, 20)) == 4, "strangers have turned away no one"
    assert [one["id"] for one in Caller(reader).get(f"v1/statuses/{item.pk}/{OF_APPS[kind]}")] == [str(stays.pk)]


@pytest.mark.parametrize("kind", VERBS)
def test_only_who_may_see_an_item_learns_of_them(api: APIClient, reader: User, client: Client, kind: str) -> None:
    item = ItemFactory(visibility="followers")
    fan = UserFactory()
    for one in (fan, reader):
        relations.follow(follower=one, followee=item.sender)
    VERBS[kind](fan, item)
    assert walked(api, item, kind, 20) == [fan.username]
    for path in (f"{API}/items/{{}}/{kind}", f"/api/v1/statuses/{{}}/{OF_APPS[kind]}", f"/items/{{}}/{kind}"):
        hidden, absent = (client.get(path.format(pk)) for pk in (item.pk, 5))
        assert (hidden.status_code, lasting(hidden)) == (404, lasting(absent)), path
    relations.unfollow(follower=reader, followee=item.sender)
    assert api.get(f"{API}/items/{item.pk}/{kind}").status_code == 404


@pytest.mark.parametrize("kind", VERBS)
def test_the_page_goes_on_and_asks_no_more_for_more_people(client: Client, reader: User, kind: str) -> None:
    item = ItemFactory()
    client.force_login(reader)
    assert 'class="empty"' in client.get(f"/items/{item.pk}/{kind}").content.decode()
    costs = set()
    for number in (1, 24):
        for one in UserFactory.create_batch(number):
            VERBS[kind](one, item)
        with statements() as asked:
            page = client.get(f"/items/{item.pk}/{kind}")
        costs.add(len(asked))
    assert len(costs) == 1
    assert page.content.decode().count('id="person-') == 20
    assert page.context["last_id"]
    part = client.get(f"/items/{item.pk}/{kind}?last_id={page.context['last_id']}", **PART).content.decode()
    assert (part.count('id="person-'), 'rel="next"' in part) == (5, False)
