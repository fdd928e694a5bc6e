from typing import Any

import pytest
from django.db import connection
from django.test import Client

from relations import actions
from relations.models import Follow
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db

PAIRS = {"follow": ("follower", "followee"), "block": ("blocker", "blocked"), "mute": ("muter", "muted")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["follow", "block", "mute"])
def test_relations_are_to_look_at(admin_client: Client, name: str, django_assert_num_queries: Any) -> None:
    one, two, three = UserFactory.create_batch(3)
    verb: Any = {"follow": actions.follow, "block": actions.block, "mute": actions.mute}[name]
    for first, second in ((one, two), (two, three), (one, three)):
        verb(**dict(zip(PAIRS[name], (first, second), strict=True)))
    url = f"/admin/relations/{name}/"

    def pairs(**query: str) -> set[tuple[int, int]]:
        rows = admin_client.get(url, query).context["cl"].result_list
        return {tuple(getattr(row, f"{side}_id") for side in PAIRS[name]) for row in rows}

    assert pairs() == {(one.pk, two.pk), (two.pk, three.pk), (one.pk, three.pk)}
    assert pairs(q=str(two.pk)) == {(one.pk, two.pk), (two.pk, three.pk)}
    assert pairs(q=f"@{two.username.upper()}") == {(one.pk, two.pk), (two.pk, three.pk)}
    assert pairs(q="somebody") == set()
    page = admin_client.get(url).content.decode()
    assert f'<a href="/admin/accounts/user/{two.pk}/change/">@{two.username}</a> ({two.pk})' in page
    with django_assert_num_queries(3):  # estimate, count, rows
        admin_client.get(url)
    assert admin_client.get(f"{url}add/").status_code == 403


def test_no_page_steps_over_more_rows_than_are_listed(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """An offset makes PostgreSQL read every row before it."""
    monkeypatch.setattr("web.paginator.EXACT_UP_TO", 3)
    monkeypatch.setattr("relations.admin.FollowAdmin.list_per_page", 2)
    one, *others = UserFactory.create_batch(7)
    for other in others:
        actions.follow(follower=one, followee=other)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE relations_follow")
    shown = admin_client.get("/admin/relations/follow/").context["cl"]
    assert (shown.paginator.count, shown.paginator.num_pages) == (6, 2)
    assert len(admin_client.get("/admin/relations/follow/", {"p": 2}).context["cl"].result_list) == 2
    assert "e=1" in admin_client.get("/admin/relations/follow/", {"p": 3}).headers["Location"]


@pytest.mark.slow
def test_long_tables_are_estimated(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the exact limit a table is estimated and a filtered list ends."""
    monkeypatch.setattr("web.paginator.EXACT_UP_TO", 3)
    one, *others = UserFactory.create_batch(6)
    for other in others:
        actions.follow(follower=one, followee=other)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE relations_follow")
    Follow.objects.filter(followee=others[0]).delete()
    assert admin_client.get("/admin/relations/follow/").context["cl"].paginator.count == 5
    shown = admin_client.get("/admin/relations/follow/", {"q": one.pk})
    assert shown.context["cl"].paginator.count == 3
    assert "Showing the first 3 follows." in shown.content.decode()
    page = admin_client.get("/admin/relations/follow/").content.decode()
    assert "About 5 follows. Showing the first 3." in page
    assert admin_client.get("/admin/relations/follow/", {"q": others[1].pk}).context["cl"].paginator.count == 1
