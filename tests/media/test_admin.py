import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from items import actions as items
from tests.support.admin import text
from tests.support.factories import UserFactory
from tests.support.picture_posts import posted, sent
from tests.support.statements import statements

pytestmark = pytest.mark.django_db(transaction=True)

MEDIA = "/admin/media/mediafile/"
ITEMS = "/admin/items/item/"


@pytest.fixture
def desk(client: Client) -> Client:
    client.force_login(UserFactory.create(is_staff=True, is_superuser=True))
    client.get("/settings")  # caches the session
    return client


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.mark.slow
def test_the_list_and_the_page_of_a_medium(desk: Client, ann: User) -> None:
    medium, unused = sent(ann, description='a <b>dog</b> & "friend"'), sent(ann)
    item = posted(ann, medium)
    for page in (text(desk.get(MEDIA)), text(desk.get(f"{MEDIA}{medium}/change/"))):
        assert f"/staff/media/{medium}/preview" in page
        assert "a &lt;b&gt;dog&lt;/b&gt; &amp; &quot;friend&quot;" in page
        assert page.count("<details") >= 1
        assert f"/admin/items/item/{item.pk}/change/" in page
    for asked in (medium, str(item.pk), str(ann.pk)):
        found = text(desk.get(MEDIA, {"q": asked}))
        assert f"/staff/media/{medium}/preview" in found
        assert (f"/staff/media/{unused}/preview" in found) == (asked == str(ann.pk))
    for nothing in ("words", "0", "9" * 30):
        assert "/staff/media/" not in text(desk.get(MEDIA, {"q": nothing}))


@pytest.mark.slow
@pytest.mark.parametrize("content", [{}, {"sensitive": True}, {"warning": "spiders"}])
def test_an_item_shows_its_pictures_in_every_state(desk: Client, ann: User, content: dict[str, Any]) -> None:
    media = [sent(ann, description="a red square"), sent(ann)]
    item = posted(ann, *media, **content)
    for change in (lambda: None, lambda: items.reject(item=item), lambda: items.delete(item=item)):
        change()
        for page in (text(desk.get(ITEMS)), text(desk.get(f"{ITEMS}{item.pk}/change/"))):
            assert re.findall(r"/staff/media/([0-9]+)/preview", page) == media
            assert page.count("shot-veil") == (2 if content else 0)
            assert 'alt="a red square"' in page
            assert 'alt="Picture without a description"' in page
            assert "/media/" not in page.replace("/staff/media/", "").replace("/admin/media/", "").replace(MEDIA, "")


@pytest.mark.slow
def test_owners_are_named_by_one_statement(desk: Client, ann: User) -> None:
    def asked() -> int:
        with statements() as found:
            page = text(desk.get(MEDIA))
        assert f">@{ann.username}</a>" in page
        assert "Sensitive" not in page
        return len(found)

    medium = sent(ann)
    before = asked()
    for _ in range(2):
        sent(ann)
    sent(UserFactory.create())
    assert asked() == before
    assert f">@{ann.username}</a>" in text(desk.get(f"{MEDIA}{medium}/change/"))


@pytest.mark.slow
def test_lists_ask_the_same_however_many_pictures(desk: Client, ann: User) -> None:
    def asked() -> int:
        with statements() as found:
            text(desk.get(ITEMS))
        return len(found)

    posted(ann, sent(ann))
    before = asked()
    for _ in range(3):
        posted(ann, sent(ann), sent(ann))
    assert asked() == before
