"""Rejected content leaves every path on the next request. Restored content is back at once."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.actions import issue_token
from accounts.models import User
from items import actions as items
from items.models import Item, Status
from moderation import actions, reports, senders
from moderation.models import Case, WordRule
from tests.support.admin import act
from tests.support.answers import lasting
from tests.support.cases import Say
from tests.support.effort import some
from tests.support.factories import PASSWORD, UserFactory
from tests.support.pages import PART
from tests.support.timelines import read
from tests.support.workers import Workers

pytestmark = pytest.mark.django_db

NEEDLE = "needle-7f3a"


class Reader:
    """Reads every page and API list, always with the same session and token."""

    def __init__(self, user: User | None) -> None:
        self.page, self.api = Client(), APIClient()
        if user:
            self.page.force_login(user)
            self.api.credentials(HTTP_AUTHORIZATION=f"Token {issue_token(user=user)}")

    def sees(self, item: Item, root: Item | None = None) -> set[str]:
        pages = [
            "/",
            "/?last_id=9007199254740991",
            "/search?q=found",
            "/tags/found",
            "/@sender",
            f"/items/{item.pk}",
            f"/items/{item.pk}/report",
        ]
        lists = [
            "timeline/home",
            "users/sender/items",
            f"items/{item.pk}",
            f"items/{item.pk}/replies",
            "search?q=found",
            "tags/found/items",
        ]
        if root:
            pages.append(f"/items/{root.pk}")
            lists.append(f"items/{root.pk}/replies")
        found = {address for address in pages if NEEDLE in self.page.get(address).content.decode()}
        found |= {f"part {address}" for address in pages if NEEDLE in self.page.get(address, **PART).content.decode()}
        return found | {address for address in lists if NEEDLE in self.api.get(f"/api/v1/{address}").content.decode()}


Way = Callable[[Item, User], Any]


def reported(item: Item, moderator: User) -> None:
    for reporter in UserFactory.create_batch(3):
        reports.report(item=item, reporter=reporter, reason="spam")


def edited(item: Item, moderator: User) -> None:
    WordRule.objects.create(text="spam")
    items.edit(item=item, content={"text": f"{NEEDLE} spam #found"})


def rejected(item: Item, moderator: User) -> None:
    reports.report(item=item, reporter=UserFactory.create(), reason="spam")
    actions.reject(case=Case.objects.get(), by=moderator)


def deleted(item: Item, moderator: User) -> None:
    items.delete(item=item)


def banned(item: Item, moderator: User) -> None:
    senders.ban(user=item.sender, by=moderator)


@pytest.mark.slow
@pytest.mark.parametrize("way", [reported, edited, rejected, deleted, banned])
@pytest.mark.parametrize("delivered", some(1, [True, False]))
def test_gone_from_every_path_on_the_next_request(
    way: Way, delivered: bool, sender: User, reader: User, moderator: User, workers: Workers, say: Say
) -> None:
    item = say(f"the {NEEDLE} #found")
    items.repost(sender=UserFactory.create(username="fan"), item=item)
    visitors, writer = [Reader(reader), Reader(None)], Reader(sender)
    read(reader)
    if delivered:
        workers.work()
    before = [visitor.sees(item) for visitor in visitors]
    assert {"/", "part /", "/@sender", "timeline/home", "users/sender/items", f"items/{item.pk}"} <= before[0]
    assert {"/search?q=found", "search?q=found", "/tags/found", "tags/found/items"} <= before[0]
    assert {"/@sender", f"/items/{item.pk}", "users/sender/items", f"items/{item.pk}"} <= before[1]
    way(item, moderator)
    assert [visitor.sees(item) for visitor in visitors] == [set(), set()]
    own = writer.sees(item)
    assert bool(own) == (way not in (deleted, banned))
    assert ("/" in own) == (way in (reported, edited)), "the strip of what is in review"
    assert {"part /", "timeline/home"}.isdisjoint(own)


@pytest.mark.long
@pytest.mark.parametrize("way", [reported, edited, rejected, deleted, banned])
def test_replies_go_likewise(way: Way, sender: User, reader: User, moderator: User, workers: Workers, say: Say) -> None:
    root = say("root", by=UserFactory.create())
    item = say(f"the {NEEDLE}", reply_to=root)
    visitor = Reader(reader)
    assert {f"/items/{root.pk}", f"items/{root.pk}/replies", f"items/{item.pk}"} <= visitor.sees(item, root)
    assert visitor.api.get(f"/api/v1/items/{root.pk}").json()["counts"]["replies"] == 1
    way(item, moderator)
    assert visitor.sees(item, root) == set()
    if way is not banned:
        assert visitor.api.get(f"/api/v1/items/{root.pk}").json()["counts"]["replies"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("way", [reported, edited, rejected, deleted, banned])
def test_hidden_items_look_as_if_they_had_never_been(way: Way, reader: User, moderator: User, say: Say) -> None:
    item = say(NEEDLE)
    way(item, moderator)
    visitor = Reader(reader)
    for address in ("/items/{}", "/items/{}/report", "/items/{}/edit"):
        gone, never = (visitor.page.get(address.format(number)) for number in (item.pk, 12345))
        assert (gone.status_code, lasting(gone)) == (404, lasting(never))
    for address in ("items/{}", "items/{}/replies"):
        gone, never = (visitor.api.get(f"/api/v1/{address.format(number)}") for number in (item.pk, 12345))
        assert (gone.status_code, gone.content) == (404, never.content)
    for verb in ("like", "repost", "report"):
        method = visitor.api.put if verb == "like" else visitor.api.post
        body = {"reason": "spam"} if verb == "report" else {}
        gone, never = (method(f"/api/v1/items/{number}/{verb}", body) for number in (item.pk, 12345))
        assert (gone.status_code, gone.content) == (404, never.content)


@pytest.mark.slow
def test_held_before_it_was_published_nobody_ever_saw_it(
    sender: User, reader: User, workers: Workers, spam: WordRule, say: Say
) -> None:
    item = say(f"spam {NEEDLE}")
    assert workers.queue == []
    assert Reader(reader).sees(item) == Reader(None).sees(item) == set()
    assert {"/@sender", f"/items/{item.pk}", "users/sender/items"} <= Reader(sender).sees(item)


@pytest.mark.slow
def test_approval_shows_it_at_its_old_place_at_once(
    reader: User, moderator: User, workers: Workers, spam: WordRule, say: Say
) -> None:
    """Workers are stopped first, so only the delivery row can bring it."""
    older, held, newer = say("older"), say(f"spam {NEEDLE}"), say("newer")
    read(reader)
    workers.work()
    assert read(reader) == [newer.pk, older.pk]
    actions.approve(case=Case.objects.get(), by=moderator)
    assert read(reader) == [newer.pk, held.pk, older.pk]
    assert {"/", "timeline/home", "/@sender", f"items/{held.pk}"} <= Reader(reader).sees(held)
    assert read(reader, last_id=newer.pk) == [held.pk, older.pk]
    workers.work()
    assert read(reader) == [newer.pk, held.pk, older.pk]


@pytest.mark.slow
def test_there_and_back_again(reader: User, moderator: User, workers: Workers, spam: WordRule, say: Say) -> None:
    item = say("spam")
    read(reader)
    case = Case.objects.get()
    for _ in range(2):
        actions.approve(case=case, by=moderator, state=Case.objects.get().state)
        assert read(reader) == [item.pk]
        workers.work()
        actions.reject(case=case, by=moderator, state=Case.objects.get().state)
        assert read(reader) == []
        workers.work()
        assert read(reader) == []


@pytest.mark.slow
def test_a_ban_ends_sessions_and_tokens(sender: User, moderator: User, say: Say) -> None:
    say()
    banned, token = Reader(sender), issue_token(user=sender)
    assert banned.page.get("/settings").status_code == 200
    senders.ban(user=sender, by=moderator)
    assert banned.page.get("/settings")["Location"].startswith("/login")
    assert banned.page.post("/items/new", {"text": "x", "visibility": "public"})["Location"].startswith("/login")
    assert banned.api.get("/api/v1/users/me").status_code == 401
    refused = APIClient().post("/api/v1/auth/token", {"username": "sender", "password": PASSWORD})
    assert (refused.status_code, refused.json()["code"]) == (403, "suspended")
    for address in ("users/sender", "users/sender/items"):
        assert APIClient().get(f"/api/v1/{address}").status_code == 404
    assert Item.objects.count() == 1

    senders.unban(user=sender, by=moderator)
    assert APIClient().get("/api/v1/users/sender").status_code == 200
    assert banned.page.get("/settings")["Location"].startswith("/login")  # the session may be stolen, so it stays ended
    again = APIClient()
    again.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    assert again.get("/api/v1/users/me").status_code == 401


def test_restoring_in_the_list_of_items_ends_the_wait(
    admin_client: Client, reader: User, workers: Workers, spam: WordRule, say: Say
) -> None:
    item = say("spam")
    act(admin_client, "/admin/items/item/", "restore", item)
    assert read(reader) == [item.pk]
    assert Item.objects.get(pk=item.pk).status == Status.PUBLISHED
