import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from items import actions as items
from relations import actions as relations
from tests.support.admin import text
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_a_home_is_explained_from_the_page_of_the_user(admin_client: Client) -> None:
    reader, friend = UserFactory.create(username="reader"), UserFactory.create(username="friend")
    relations.follow(follower=reader, followee=friend)
    item = items.publish(sender=friend, content={"text": "a word"})
    address = f"/admin/accounts/user/{reader.pk}/home/"
    assert f'href="{address}"' in text(admin_client.get(f"/admin/accounts/user/{reader.pk}/change/"))
    shown = text(admin_client.get(address))
    assert '<h2 id="part-next_page">The next page</h2>' in shown
    assert "The reader sees it at home." in text(admin_client.get(address, {"item": item.pk}))
    relations.mute(muter=reader, muted=friend)
    shown = text(admin_client.get(address, {"item": item.pk}))
    assert f"Post {item.pk}</h2>" in shown
    assert "<p>The reader doesn&#x27;t see it at home.</p><p>The reader mutes its author.</p>" in shown
    assert "This post doesn&#x27;t exist." in text(admin_client.get(address, {"item": "5"}))
    for wrong in ("x", "-1", "9" * 500, "1\x00", "<b>"):
        shown = text(admin_client.get(address, {"item": wrong}))
        assert "That isn't a post ID. Check the number." in shown
        assert "<b>" not in shown


@pytest.mark.slow
def test_a_home_is_explained_to_those_who_may_see_the_user(client: Client) -> None:
    reader, staff = UserFactory.create(), UserFactory.create(is_staff=True)
    address = f"/admin/accounts/user/{reader.pk}/home/"
    assert client.get(address).status_code == 302
    client.force_login(reader)
    assert client.get(address).status_code == 302
    client.force_login(staff)
    assert client.get(address).status_code == 403
    staff.user_permissions.add(Permission.objects.get(codename="view_user"))
    assert client.get(address).status_code == 403
    assert "/home/" not in text(client.get(f"/admin/accounts/user/{reader.pk}/change/"))
    staff.user_permissions.add(*Permission.objects.filter(codename__in=["view_follow", "view_block", "view_mute"]))
    assert client.get(address).status_code == 403, "it would tell sender, state and circle of any item"
    staff.user_permissions.add(Permission.objects.get(codename="view_item"))
    assert client.get(address).status_code == 200
    assert client.get("/admin/accounts/user/999999/home/").status_code == 302
