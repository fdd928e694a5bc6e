import io
import json
import re
import time
import zipfile
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
import redis
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from accounts import actions
from accounts.export import write_archive
from accounts.models import User
from discover import feedback, recent
from discover.exclusions import exclude
from discover.recall import RecalledItem
from items import actions as items
from items.models import Item
from items.signals import item_viewed
from seen import played
from storage import connections
from tests.support.api import API
from tests.support.factories import ItemFactory, UserFactory
from tests.support.pages import PART
from tests.support.patience import SHORT
from tests.support.servers import Valkey, dead, frozen
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

UNAVAILABLE = "isn't available right now"


def viewed(user: User) -> tuple[list[int], list[int]]:
    views = recent.views_of(user.pk, now=timezone.now())
    assert views is not None
    return [view.item_id for view in views.items], [view.item_id for view in views.replies]


def open_all(user: User, *those: Item, ago: timedelta = timedelta(0)) -> None:
    recent.record(user.pk, items=[item.pk for item in those], now=timezone.now() - ago)


# --- Recording -------------------------------------------------------------------------------------------
@pytest.fixture(params=["page", "api"])
def get(request: Any, page: Client, api: APIClient) -> Callable[..., Any]:
    if request.param == "page":
        return lambda item, **options: page.get(f"/items/{item.pk}", **options)
    return lambda item, **options: api.get(f"{API}/items/{item.pk}", **options)


@pytest.mark.slow
def test_opening_an_item_is_remembered(get: Callable[..., Any], ann: User) -> None:
    first, second = ItemFactory(), ItemFactory()
    for item in (first, second, first):
        assert get(item).status_code == 200
    assert viewed(ann) == ([first.pk, second.pk], [])


@pytest.mark.parametrize(
    ("what", "is_played"), [("auto", False), ("impressions", False), ("plays", True), ("both", True)]
)
def test_opening_an_item_is_a_play_where_plays_count(
    page: Client, ann: User, settings: Any, what: str, is_played: bool
) -> None:
    settings.DISCOVER_SEEN = what
    item = ItemFactory()
    assert page.get(f"/items/{item.pk}").status_code == 200
    assert (item.pk in played.recent_ids(ann.pk).played) == is_played


@pytest.mark.slow
def test_opening_an_item_without_the_server_of_plays(
    page: Client, ann: User, settings: Any, plays_server: Valkey
) -> None:
    settings.DISCOVER_SEEN = "both"
    item = ItemFactory()
    with dead(plays_server):
        assert page.get(f"/items/{item.pk}").status_code == 200
    assert viewed(ann) == ([item.pk], [])


def test_opening_a_repost_is_opening_its_original(get: Callable[..., Any], ann: User) -> None:
    item: Item = ItemFactory()
    repost, _ = items.repost(sender=UserFactory(), item=item)
    get(repost)
    assert viewed(ann) == ([item.pk], [])


def test_opening_a_reply_is_remembered_apart(get: Callable[..., Any], ann: User) -> None:
    root: Item = ItemFactory()
    reply = ItemFactory(reply_to=root)
    get(reply)
    assert viewed(ann) == ([], [reply.pk])
    left = exclude(ann, [RecalledItem(root.pk, root.sender_id, 0, "")], now=timezone.now())
    assert left.excluded == {"reply_viewed": 1}


@pytest.mark.slow
def test_a_page_remembers_the_replies_that_it_shows(page: Client, ann: User) -> None:
    root: Item = ItemFactory()
    replies = [ItemFactory(reply_to=root) for _ in range(23)]
    own = ItemFactory(reply_to=root, sender=ann)
    shown = page.get(f"/items/{root.pk}").content.decode()
    found = {int(one) for one in re.findall(r'id="item-(\d+)"', shown)} - {root.pk, own.pk}
    assert (viewed(ann)[0], set(viewed(ann)[1])) == ([root.pk], found)
    assert len(found) < len(replies)
    (following,) = re.findall(r'hx-get="([^"]*last_id=[^"]*)"', shown)
    page.get(unescape(following))
    assert set(viewed(ann)[1]) == {reply.pk for reply in replies}
    assert own.pk not in viewed(ann)[1]


@pytest.mark.slow
def test_a_reply_that_was_opened_is_above_those_below_it(page: Client, ann: User) -> None:
    reply: Item = ItemFactory(reply_to=ItemFactory())
    below = ItemFactory(reply_to=reply)
    page.get(f"/items/{reply.pk}")
    assert viewed(ann) == ([], [reply.pk, below.pk])


@pytest.mark.slow
def test_requests_that_are_no_opening(page: Client, api: APIClient, ann: User) -> None:
    item, own = ItemFactory(), ItemFactory(sender=ann)
    ItemFactory(reply_to=own)
    for client, prefix in ((page, ""), (api, API)):
        address = f"{prefix}/items/{item.pk}"
        client.head(address)
        client.options(address)
        client.get(address, headers={"sec-purpose": "prefetch"})
        client.get(address, headers={"sec-purpose": "prefetch;prerender"})
        client.get(f"{prefix}/items/{own.pk}")
        client.get(f"{prefix}/items/12345")
        Client().get(address)
    page.get(f"/items/{item.pk}", **PART)
    page.get(f"/items/{item.pk}?last_id=1", **PART)
    page.get(f"/items/{item.pk}", headers={"sec-fetch-dest": "empty"})
    api.get(f"{API}/items/{item.pk}/replies")
    page.get(f"/@{item.sender.username}")
    assert viewed(ann) == ([], [])
    page.get(f"/items/{item.pk}", headers={"sec-fetch-dest": "document"})
    assert viewed(ann) == ([item.pk], [])


@pytest.mark.slow
def test_paused_readers_are_not_watched(get: Callable[..., Any], ann: User) -> None:
    before, during, after = ItemFactory(), ItemFactory(), ItemFactory()
    get(before)
    actions.edit_preferences(user=ann, keeps_history=False)
    get(during)
    assert viewed(ann) == ([before.pk], [])
    actions.edit_preferences(user=ann, keeps_history=True)
    get(after)
    assert viewed(ann) == ([after.pk, before.pk], [])


def test_recording_asks_nothing_of_postgresql_and_redis_once(
    page: Client, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    item: Item = ItemFactory()
    ItemFactory(reply_to=item)
    page.get("/settings")  # copies the session
    counts, trips = [], []
    pipelined = recent.pipelined
    monkeypatch.setattr(recent, "pipelined", lambda *args: trips.append(1) or pipelined(*args))
    for keeps in (False, True):
        actions.edit_preferences(user=ann, keeps_history=keeps)
        with statements() as seen:
            page.get(f"/items/{item.pk}")
        counts.append(len(seen))
    assert counts[0] == counts[1]
    assert len(trips) == 1


def test_a_receiver_that_fails_harms_no_page(get: Callable[..., Any]) -> None:
    def fail(**kwargs: Any) -> None:
        raise ValueError

    item_viewed.connect(fail)
    try:
        assert get(ItemFactory()).status_code == 200
    finally:
        item_viewed.disconnect(fail)


@pytest.mark.slow
def test_without_redis_pages_open_all_the_same(get: Callable[..., Any], feeds_server: Valkey) -> None:
    item: Item = ItemFactory()
    get(item)
    with dead(feeds_server):
        connections.feeds_breaker.reset()
        assert get(item).status_code == 200


@pytest.mark.slow
def test_a_frozen_redis_keeps_one_page_a_second_waiting(
    page: Client, feeds_server: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    item: Item = ItemFactory()
    page.get(f"/items/{item.pk}")
    waits: list[float] = []
    pipelined = recent.pipelined

    def wait(*args: Any) -> Any:
        begin = time.monotonic()
        try:
            return pipelined(*args)
        finally:
            waits.append(time.monotonic() - begin)

    monkeypatch.setattr(recent, "pipelined", wait)
    with frozen(feeds_server):
        start = time.monotonic()
        for _ in range(10):
            assert page.get(f"/items/{item.pk}").status_code == 200
        seconds = time.monotonic() - start
    assert 1 <= len(waits) <= 1 + seconds
    assert max(waits) < SHORT


# --- Over the API ----------------------------------------------------------------------------------------
def listed(api: APIClient, query: str = "") -> tuple[list[int], str | None, bool]:
    response = api.get(f"{API}/me/history{query}")
    assert response.status_code == 200, response.content
    body = response.json()
    assert body.keys() == {"items", "last_id", "has_more"}
    return [int(item["id"]) for item in body["items"]], body["last_id"], body["has_more"]


def test_the_last_opened_first(api: APIClient, ann: User) -> None:
    assert listed(api) == ([], None, False)
    first, second, third = ItemFactory(), ItemFactory(), ItemFactory()
    open_all(ann, third, first, second)
    open_all(UserFactory(), ItemFactory())
    ids, last_id, has_more = listed(api)
    assert ids == [second.pk, first.pk, third.pk]
    assert not has_more
    assert listed(api, f"?last_id={last_id}") == ([], None, False)


def test_walked_page_by_page_while_more_is_opened(api: APIClient, ann: User) -> None:
    made = [ItemFactory() for _ in range(7)]
    open_all(ann, *made)
    walked: list[int] = []
    query, has_more = "?limit=2", True
    while has_more:
        ids, last_id, has_more = listed(api, query)
        walked += ids
        query = f"?limit=2&last_id={last_id}"
        open_all(ann, ItemFactory())
    assert walked == [item.pk for item in reversed(made)]


def test_the_cursor_needs_nothing_there_any_more(api: APIClient, ann: User) -> None:
    made = [ItemFactory() for _ in range(4)]
    open_all(ann, *made)
    _, last_id, _ = listed(api, "?limit=2")
    open_all(ann, made[2])  # the last item of the page moves to the top
    assert listed(api, f"?last_id={last_id}")[0] == [made[1].pk, made[0].pk]
    assert listed(api, "?last_id=9007199254740992")[0][0] == made[2].pk
    assert listed(api, "?last_id=1") == ([], None, False)


def test_hidden_items_are_left_out_and_the_page_still_full(api: APIClient, ann: User) -> None:
    made = [ItemFactory() for _ in range(6)]
    open_all(ann, *made)
    items.delete(item=made[5])
    items.change_visibility(item=made[3], visibility="self")
    ids, last_id, has_more = listed(api, "?limit=2")
    assert (ids, has_more) == ([made[4].pk, made[2].pk], True)
    assert listed(api, f"?limit=2&last_id={last_id}") == ([made[1].pk, made[0].pk], listed(api)[1], False)


def test_items_as_everywhere(api: APIClient, ann: User) -> None:
    item: Item = ItemFactory()
    items.like(user=ann, item=item)
    open_all(ann, item)
    assert api.get(f"{API}/me/history").json()["items"] == [api.get(f"{API}/items/{item.pk}").json()]


def test_clearing_forgets_all_and_again_changes_nothing(api: APIClient, ann: User, feeds: redis.Redis) -> None:
    other = UserFactory()
    item: Item = ItemFactory()
    for user in (ann, other):
        recent.record(user.pk, items=[item.pk], replies=[item.pk], now=timezone.now())
    for _ in range(2):
        response = api.delete(f"{API}/me/history")
        assert (response.status_code, response.content) == (204, b"")
        assert viewed(ann) == ([], [])
    assert viewed(other) == ([item.pk], [item.pk])


@pytest.mark.parametrize("limit", ["0", "-1", "abc", "1_0", "٣", "9" * 20, "9" * 5000, "1&limit=2", "%00", "1.5"])
def test_limits_that_are_none(api: APIClient, limit: str) -> None:
    assert api.get(f"{API}/me/history?limit={limit}").status_code == 400


@pytest.mark.parametrize(
    "last_id", ["abc", "1.5", "NaN", "%00", "-1", "0", "9007199254740993", "1&last_id=2", "٣", "9" * 5000]
)
def test_positions_that_are_none(api: APIClient, last_id: str) -> None:
    assert api.get(f"{API}/me/history?last_id={last_id}").status_code == 400


def test_empty_parameters_and_large_limits(api: APIClient, ann: User) -> None:
    open_all(ann, ItemFactory())
    assert len(listed(api, "?limit=&last_id=")[0]) == 1
    assert len(listed(api, "?limit=5000")[0]) == 1


def test_callers_who_may_not(api: APIClient, page: Client) -> None:
    address = f"{API}/me/history"
    for client_method in (APIClient().get, APIClient().delete):
        for headers in ({}, {"authorization": "Token abc"}):
            response = client_method(address, headers=headers)
            assert response.status_code == 401
            assert response["WWW-Authenticate"].startswith("Token")
    session = Client(enforce_csrf_checks=True)
    session.cookies = page.cookies
    assert session.get(address).status_code == 200
    assert session.delete(address).status_code == 403
    assert api.post(address, {}).status_code == api.put(address).status_code == api.patch(address).status_code == 405


@pytest.mark.slow
@pytest.mark.parametrize("fault", [dead, frozen])
@pytest.mark.parametrize("method", ["get", "delete"])
def test_an_outage_is_said(api: APIClient, feeds_server: Valkey, fault: Any, method: str) -> None:
    with fault(feeds_server):
        response = getattr(api, method)(f"{API}/me/history")
    assert response.status_code == 503
    assert int(response["Retry-After"]) > 0
    assert response.json().keys() == {"detail"}


# --- The page --------------------------------------------------------------------------------------------
def text(page: Client, address: str = "/history", **options: Any) -> str:
    response = page.get(address, **options)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def test_the_page_shows_what_was_opened_and_when(page: Client, ann: User) -> None:
    assert "Nothing here." in text(page)
    open_all(ann, ItemFactory(content={"text": "zebra"}), ago=timedelta(hours=3))
    shown = text(page)
    assert "zebra" in shown
    assert re.search(r"Opened · .*<time [^>]*>3 h</time>", shown)
    assert "History is on." in shown
    assert "the last 10 posts you opened" in shown


def test_pausing_and_resuming(page: Client, ann: User) -> None:
    item: Item = ItemFactory(content={"text": "zebra"})
    open_all(ann, item)
    for verb, state, offers in (("pause", "paused", "resume"), ("resume", "on", "pause")):
        for _ in range(2):
            response = page.post(f"/history/{verb}")
            assert (response.status_code, response["Location"]) == (302, "/history")
        shown = text(page)
        assert f"History is {state}." in shown
        assert f'action="/history/{offers}"' in shown
        assert f'action="/history/{verb}"' not in shown
        assert "zebra" in shown
        ann.refresh_from_db()
        assert ann.keeps_history == (verb == "resume")


def test_pausing_outlives_redis(page: Client, feeds: redis.Redis) -> None:
    page.post("/history/pause")
    feeds.flushall()
    assert "History is paused." in text(page)


def test_clearing(page: Client, ann: User) -> None:
    open_all(ann, ItemFactory(content={"text": "zebra"}))
    assert "zebra" in text(page)
    response = page.post("/history/clear", follow=True)
    shown = response.content.decode()
    assert "History cleared." in shown
    assert "Nothing here." in shown
    assert viewed(ann) == ([], [])


def test_htmx_gets_the_part_that_changes(page: Client, ann: User) -> None:
    open_all(ann, ItemFactory(content={"text": "zebra"}))
    for verb, said, there in (
        ("pause", "We no longer remember posts you open.", True),
        ("clear", "History cleared.", False),
        ("resume", "History is on again.", False),
    ):
        answer = page.post(f"/history/{verb}", **PART)
        part = answer.content.decode()
        assert '<section id="history">' in part
        assert "<html" not in part
        assert said in json.loads(answer["HX-Trigger"])["said"]["words"]
        assert ("zebra" in part) == there


@pytest.mark.slow
def test_redis_gone_is_said_and_nothing_is_claimed(page: Client, ann: User, feeds_server: Valkey) -> None:
    open_all(ann, ItemFactory(content={"text": "zebra"}))
    with frozen(feeds_server):
        assert UNAVAILABLE in text(page)
        for options in ({}, PART):
            response = page.post("/history/clear", follow=True, **options)
            assert response.status_code == 200
            assert "t work. Try again in a moment." in response.content.decode() + response.get("HX-Trigger", "")
            assert "History cleared." not in response.content.decode()
        page.post("/history/pause")
        assert "History is paused." in text(page)
    connections.feeds_breaker.reset()
    assert "zebra" in text(page)


@pytest.mark.slow
def test_a_following_page_is_a_part(page: Client, ann: User, settings: Any) -> None:
    settings.RECENT_VIEWS = 30
    made = [ItemFactory(content={"text": f"zebra {number}."}) for number in range(25)]
    open_all(ann, *made)
    shown = text(page)
    address = re.search(r'rel="next" href="([^"]+)"', shown)
    assert address
    part = text(page, address[1], **PART)
    assert "<html" not in part
    assert 'action="/history/pause"' not in part
    found = [int(number) for number in re.findall(r"zebra (\d+)\.", shown + part)]
    assert found == list(range(24, -1, -1))
    assert "Newest first" in text(page, address[1])


def test_strangers_and_other_methods(client: Client, page: Client, ann: User) -> None:
    stranger = Client()
    for address in ("/history", "/history/not-interested"):
        assert stranger.get(address)["Location"].startswith("/login?next=")
        assert page.post(address).status_code == 405
    assert stranger.post("/history/clear")["Location"] == "/login"
    assert page.get("/history/clear").status_code == 405
    assert page.post("/history/forget").status_code == 404


def test_the_settings_lead_there(page: Client) -> None:
    assert 'href="/history"' in text(page, "/settings")


# --- Own data --------------------------------------------------------------------------------------------
def archive(user: User) -> dict[str, list[Any]]:
    target = io.BytesIO()
    write_archive(user, target)
    with zipfile.ZipFile(target) as written:
        names = ("account.json", "history.jsonl", "not_interested.jsonl")
        return {name: [json.loads(line) for line in written.read(name).splitlines()] for name in names}


def test_the_archive_has_what_one_opened_and_does_not_want(ann: User) -> None:
    root: Item = ItemFactory(sender=UserFactory(username="bob"))
    reply, hidden = ItemFactory(reply_to=root, sender=root.sender), ItemFactory()
    for item in (root, hidden):
        feedback.not_interested(user=ann, item=item)
    moment = timezone.now().replace(microsecond=0)
    recent.record(ann.pk, items=[root.pk, hidden.pk], replies=[reply.pk], now=moment)
    items.delete(item=hidden)
    actions.edit_preferences(user=ann, keeps_history=False)
    data = archive(ann)
    when = moment.isoformat().replace("+00:00", "Z")
    assert data["history.jsonl"] == [
        {"item_id": str(root.pk), "by": "bob", "is_reply": False, "viewed_at": when},
        {"item_id": str(reply.pk), "by": "bob", "is_reply": True, "viewed_at": when},
    ]
    assert [row.pop("since") for row in data["not_interested.jsonl"]]
    assert data["not_interested.jsonl"] == [{"item_id": str(root.pk), "by": "bob"}]
    assert data["account.json"][0]["keeps_history"] is False


@pytest.mark.slow
def test_the_archive_says_where_redis_did_not_answer(ann: User, feeds_server: Valkey) -> None:
    open_all(ann, ItemFactory())
    target = io.BytesIO()
    with dead(feeds_server):
        write_archive(ann, target)
    with zipfile.ZipFile(target) as written:
        assert written.read("history.jsonl") == b""
        assert "We couldn't read it just now. Try again later." in written.read("README.txt").decode()
