from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import RepliableBy, User
from items.actions import change_repliable, edit, publish, publish_past, repost
from items.models import Item, Visibility
from items.profiles.profile import find_item
from items.text import ContentError
from items.threads.replying import NotRepliableError
from relations.actions import follow
from tests.support.at_once import until_one_waits
from tests.support.clients import token_of
from tests.support.factories import UserFactory, say
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

MAY = {
    RepliableBy.EVERYONE: {"sender", "fan", "named", "stranger"},
    RepliableBy.FOLLOWERS: {"sender", "fan"},
    RepliableBy.MENTIONED: {"sender", "named"},
    RepliableBy.NOBODY: {"sender"},
}
"""Who may reply anywhere in a thread, by the choice of its first post."""


@pytest.fixture
def people(ann: User) -> dict[str, User]:
    found = {"sender": ann} | {name: UserFactory.create(username=name) for name in ("fan", "named", "stranger")}
    follow(follower=found["fan"], followee=ann)
    return found


def may(item: Item, reader: Any) -> bool:
    shown = find_item(item.pk, reader)
    assert shown is not None
    return shown.can_reply


@pytest.mark.parametrize("repliable_by", RepliableBy.values)
def test_the_first_post_decides_who_replies_anywhere_below(
    people: dict[str, User], ann: User, repliable_by: str
) -> None:
    root = say(ann, "hello @Named", repliable_by=repliable_by)
    own = say(ann, "more", reply_to=root)
    again, _ = repost(sender=people["stranger"], item=root)
    for name, user in people.items():
        for item in (root, own, again):
            shown = find_item(item.pk, user)
            assert shown is not None
            assert (shown.repliable_by, shown.can_reply) == (repliable_by, name in MAY[RepliableBy(repliable_by)])
            if shown.can_reply:
                assert say(user, reply_to=item).root_id == root.pk
            else:
                with pytest.raises(NotRepliableError):
                    say(user, reply_to=item)
                with pytest.raises(NotRepliableError):
                    say(user, "@ann", reply_to=item, visibility=Visibility.MENTIONED)
    assert not may(root, AnonymousUser())


def test_it_is_changed_later_and_replies_stand(people: dict[str, User], ann: User) -> None:
    root, stranger = say(ann), people["stranger"]
    there = say(stranger, "first", reply_to=root)
    change_repliable(item=root, repliable_by="nobody")
    assert find_item(there.pk, people["fan"])
    assert not may(there, stranger)
    change_repliable(item=root, repliable_by="mentioned")
    assert not may(root, stranger)
    edit(item=root, content={"text": "what do you think, @stranger?"})
    assert may(root, stranger)
    edit(item=root, content={"text": "nothing"})
    assert not may(root, stranger)
    change_repliable(item=root, repliable_by="everyone")
    assert may(root, stranger)


def test_a_reply_chooses_nothing_else_than_its_root(ann: User, bob: User) -> None:
    root = say(ann)
    with pytest.raises(ContentError):
        say(bob, reply_to=root, repliable_by="nobody")
    reply = say(bob, reply_to=root, repliable_by="everyone")
    with pytest.raises(ContentError):
        change_repliable(item=reply, repliable_by="nobody")


def test_a_repeated_call_returns_a_reply_that_is_now_refused(ann: User, bob: User) -> None:
    root = say(ann)
    first = publish(sender=bob, content={"text": "a"}, reply_to=root, idempotency_key="k")
    change_repliable(item=root, repliable_by="nobody")
    assert publish(sender=bob, content={"text": "a"}, reply_to=root, idempotency_key="k") == first


def test_a_page_asks_once(api: APIClient, ann: User, bob: User) -> None:
    def page() -> int:
        with statements() as found:
            answer = api.get("/api/v1/users/ann/items")
        assert [item["can_reply"] for item in answer.json()["items"]] == [False] * len(answer.json()["items"])
        return len(found)

    api.force_authenticate(bob)
    say(ann, repliable_by="nobody")
    before = page()
    for who in ("followers", "mentioned", "nobody"):
        say(ann, repliable_by=who)
    assert page() == before


# --- Private mentions ------------------------------------------------------------------------------------
def test_the_people_of_a_private_mention_may_reply(ann: User, bob: User) -> None:
    root = say(ann)
    aside = say(bob, "@ann well", reply_to=root, visibility="mentioned")
    change_repliable(item=root, repliable_by="nobody")
    old = say(ann, "@bob hello", visibility="mentioned")
    Item.objects.filter(pk=old.pk).update(repliable_by="nobody")
    for answered in (aside, say(ann, "yes", reply_to=aside), old):
        assert may(answered, bob)
        assert say(bob, "go on", reply_to=answered).is_private
    stranger = UserFactory.create()
    with pytest.raises(ContentError, match="in this conversation"):
        say(stranger, "me too", reply_to=aside)


def test_a_private_mention_limits_nobody(api: APIClient, client: Client, ann: User, bob: User) -> None:
    api.force_authenticate(ann)
    words = {"content": {"text": "@bob hello"}, "visibility": "mentioned", "repliable_by": "nobody"}
    later = {"publish_at": (timezone.now() + timedelta(hours=1)).isoformat()}
    for address, extra in (("/api/v1/items", {}), ("/api/v1/me/scheduled", later)):
        refused = api.post(address, words | extra, format="json")
        assert (refused.status_code, list(refused.json())) == (400, ["repliable_by"])
    item = say(ann, "@bob hello", visibility="mentioned")
    refused = api.patch(f"/api/v1/items/{item.pk}", {"repliable_by": "nobody"}, format="json")
    assert (refused.status_code, list(refused.json())) == (400, ["repliable_by"])
    User.objects.filter(pk=ann.pk).update(post_repliable_by="nobody")
    api.force_authenticate(None)
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {token_of(ann)}")
    assert api.post("/api/v1/statuses", {"status": "@bob app", "visibility": "direct"}).status_code == 200
    client.force_login(ann)
    client.post("/items/new", {"text": "@bob page", "visibility": "mentioned", "repliable_by": "nobody"})
    assert set(Item.objects.values_list("repliable_by", flat=True)) == {"everyone"}
    assert Item.objects.count() == 3
    assert "repliable_by" not in client.get(f"/items/{item.pk}/edit").content.decode()


# --- Races -----------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_reply_and_a_change_at_once_take_turns(ann: User, bob: User) -> None:
    def reply() -> int | None:
        try:
            return say(bob, reply_to=root).pk
        except NotRepliableError:
            return None

    def close() -> None:
        change_repliable(item=root, repliable_by="nobody")

    with ThreadPoolExecutor(1) as other:
        for first, second in ((reply, close), (close, reply)):
            root = say(ann)
            with transaction.atomic():
                first()
                waiting = other.submit(ended, second)
                until_one_waits()
            assert waiting.result(10) is None
            root.refresh_from_db()
            assert (root.repliable_by, root.replies.count()) == ("nobody", 1 if first == reply else 0)


def ended(call: Callable[[], Any]) -> Any:
    try:
        return call()
    finally:
        connection.close()


# --- Doors -----------------------------------------------------------------------------------------------
def test_the_api(api: APIClient, ann: User, bob: User) -> None:
    api.force_authenticate(ann)
    made = api.post("/api/v1/items", {"content": {"text": "x"}, "repliable_by": "nobody"}, format="json")
    assert made.status_code == 201
    assert (made.json()["repliable_by"], made.json()["can_reply"]) == ("nobody", True)
    address = f"/api/v1/items/{made.json()['id']}"
    answer = {"content": {"text": "y"}, "reply_to": made.json()["id"]}
    api.force_authenticate(bob)
    refused = api.post("/api/v1/items", answer, format="json")
    assert (refused.status_code, refused.json()["code"]) == (403, "not_repliable")
    assert api.patch(address, {"repliable_by": "everyone"}, format="json").status_code == 403
    api.force_authenticate(ann)
    changed = api.patch(address, {"repliable_by": "everyone"}, format="json")
    assert (changed.status_code, changed.json()["repliable_by"]) == (200, "everyone")
    assert api.patch(address, {"repliable_by": "all"}, format="json").status_code == 400
    api.force_authenticate(bob)
    assert api.post("/api/v1/items", answer, format="json").status_code == 201
    differs = api.post("/api/v1/items", answer | {"repliable_by": "nobody"}, format="json")
    assert (differs.status_code, list(differs.json())) == (400, ["repliable_by"])


def test_apps_and_archives(api: APIClient, ann: User, bob: User) -> None:
    root = say(ann, repliable_by="followers")
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {token_of(bob)}")
    status = {"status": "hm", "in_reply_to_id": str(root.pk)}
    refused = api.post("/api/v1/statuses", status)
    assert (refused.status_code, refused.json()) == (
        403,
        {"error": "The author doesn't allow you to reply to this post"},
    )
    past = {"content": {"text": "then"}, "written_at": datetime(2020, 1, 1, tzinfo=UTC), "reply_to": root}
    with pytest.raises(NotRepliableError):
        publish_past(sender=bob, **past)
    follow(follower=bob, followee=ann)
    assert api.post("/api/v1/statuses", status).status_code == 200
    assert publish_past(sender=bob, **past).root_id == root.pk


def test_the_pages(client: Client, ann: User, bob: User) -> None:
    client.force_login(ann)
    client.post("/items/new", {"text": "to some", "visibility": "public", "repliable_by": "mentioned"})
    root = Item.objects.get()
    assert root.repliable_by == "mentioned"
    sentence, composer = "Only people mentioned in the first post can reply.", 'id="thread"'
    for user, has_composer in ((ann, True), (bob, False), (None, False)):
        client.logout()
        if user:
            client.force_login(user)
        page = client.get(f"/items/{root.pk}").content.decode()
        assert (sentence in page, composer in page) == (True, has_composer)
        assert "Log in to reply" not in page
    client.force_login(bob)
    assert f"reply_to={root.pk}" not in client.get("/@ann").content.decode()
    asked = client.get(f"/items/new?reply_to={root.pk}")
    assert (asked.status_code, asked["Location"]) == (302, f"/items/{root.pk}")
    words = {"text": "hm", "visibility": "public"}
    refused = client.post("/items/new", words | {"reply_to": root.pk})
    assert refused.status_code == 422
    assert "allow you to reply" in refused.content.decode()
    client.force_login(ann)
    client.post(f"/items/{root.pk}/edit", words | {"repliable_by": "everyone", "quotable_by": "everyone"})
    client.force_login(bob)
    client.post("/items/new", words | {"reply_to": root.pk})
    reply = root.replies.get()
    assert "repliable_by" not in client.get(f"/items/{reply.pk}/edit").content.decode()


def test_the_first_choice(api: APIClient, client: Client, ann: User, bob: User) -> None:
    client.force_login(ann)
    client.post("/settings/preferences", {"post_repliable_by": "followers"})
    ann.refresh_from_db()
    assert ann.post_repliable_by == "followers"
    assert '<option value="followers" selected>' in client.get("/items/new").content.decode()
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {token_of(ann)}")
    made = api.post("/api/v1/statuses", {"status": "hello"}).json()
    assert Item.objects.get(pk=made["id"]).repliable_by == "followers"
    assert api.post("/api/v1/statuses", {"status": "hm", "in_reply_to_id": str(say(bob).pk)}).status_code == 200
