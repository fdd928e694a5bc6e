"""Others and staff request every address: only its people see a private mention."""

import io
import itertools
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from accounts.export import write_archive
from accounts.models import User
from clientapi.streaming import streaming
from clientapi.streaming.streams import ClientHearer, stream_of
from discover import feedback, recent
from items import actions as items
from items import counts
from items.conversations.conversations import hide_conversation
from items.models import Bookmark, Item, Like, Pin, Visibility
from items.search.indexing import reindex
from media import actions as media
from moderation import hashes, reports
from moderation.models import Case, PictureRule
from notifications.feed import notifications_page
from relations import actions as relations
from relations import lists
from relations.models import Follow
from relations.tags import follow_tag
from storage.events import Edited, Listener, Position, Published, Withdrawn
from stream import news
from tests.support.api import client_of
from tests.support.clients import ALL, Caller
from tests.support.factories import UserFactory, say
from tests.support.pages import logged_in
from tests.support.pictures import jpeg, upload

pytestmark = pytest.mark.django_db

SECRETS = ("quokka", "numbat", "bilby", "wombat")
"""Words of the text, title, warning, picture description and reply."""
QUERIES = {
    "search": ("q=quokka", "q=from:ann", "q=%23marsupials", "q=from:ann+quokka", "q=@third"),
    "api/v1/search": ("q=quokka", "q=from:ann", "q=%23marsupials"),
    "api/v2/search": ("q=quokka", "q=%23marsupials", "q=from:ann", "q={address}&resolve=1"),
    "complete": ("q=%23mars", "q=@an"),
    "items/new": ("reply_to={item}",),
    "items/new/media": ("ids={medium}",),
    "api/v1/statuses": ("id[]={item}&id[]={reply}",),
    "api/v1/accounts/<id:account_id>/statuses": ("tagged=marsupials", "pinned=1", "only_media=1", "min_id=1"),
    "api/v1/timelines/tag/<str:tag>": ("min_id=1", "any[]=marsupials"),
}
"""Extra queries by route."""
STREAMED = ("stream", "streaming")
"""A test below runs their query."""


@dataclass
class World:
    people: dict[str, User]
    items: list[Item]
    public: Item
    medium: int
    file: str

    def fills(self, name: str) -> list[Any]:
        ids = [item.pk for item in self.items]
        known: dict[str, list[Any]] = {
            "item_id": [*ids, self.public.pk],
            "status_id": [*ids, self.public.pk],
            "conversation_id": ids[:1],
            "username": ["ann", "bob"],
            "account_id": [self.people["ann"].pk],
            "tag": ["marsupials"],
            "name": ["marsupials"],
            "media_id": [self.medium],
            "part": [0],
        }
        return known.get(name, [1])

    def query(self, text: str) -> str:
        first, reply = self.items[0].pk, self.items[1].pk
        address = f"http://localhost:8000/items/{first}"
        return text.format(item=first, reply=reply, medium=self.medium, address=address)


@pytest.fixture
def world(settings: Any, media_folder: Any) -> World:
    settings.RATE_SCALE = 1e6
    people = {name: UserFactory(username=name) for name in ("ann", "bob", "third", "fourth")}
    for one, other in itertools.permutations(people.values(), 2):
        Follow.objects.create(follower=one, followee=other)
    ann, bob = people["ann"], people["bob"]
    public = say(people["third"], "a public post #marsupials")
    medium = media.upload(owner_id=ann.pk, file=upload(jpeg()), description="bilby")
    private = {"visibility": Visibility.MENTIONED}
    first = items.publish(
        sender=ann,
        type="image",
        content={"text": "@bob quokka #marsupials", "warning": "numbat", "media": [str(medium.pk)]},
        **private,
    )
    reply = say(bob, "wombat @third #marsupials https://example.org/quokka", reply_to=first)
    below = items.publish(
        sender=ann, type="article", title="numbat", content={"text": "@bob quokka"}, reply_to=public, **private
    )
    quoting = items.publish(sender=ann, content={"text": "@bob numbat"}, quote_of=public, **private)
    said = [first, reply, below, quoting]
    items.edit(item=reply, content={"text": "wombat, too @third #marsupials"})
    for item, user in itertools.product(said, people.values()):  # also by those who may not
        Like.objects.create(user=user, item=item)
        Bookmark.objects.create(user=user, item=item)
        feedback.not_interested(user=user, item=item)
        recent.record(user.pk, items=[item.pk], now=timezone.now())
    Pin.objects.create(item=first, sender=ann)
    for one in people.values():
        follow_tag(user=one, tag="marsupials")
    made = lists.create(owner=people["third"], title="all")
    for one in (ann, bob):
        lists.add(owner=people["third"], list_id=made.pk, member=one)
    reindex()
    counts.fold()
    medium.refresh_from_db()
    return World(people, said, public, medium.pk, medium.name)


def routes(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for each in resolver.url_patterns:
        if isinstance(each, URLResolver):
            yield from routes(each, prefix + str(each.pattern))
        else:
            yield prefix + str(each.pattern), each


def addresses(world: World) -> Iterator[str]:
    for route, pattern in routes(get_resolver()):
        if route.startswith(("admin/", "^")) or any(part in STREAMED for part in route.split("/")):
            continue
        names = list(pattern.pattern.converters)
        for values in itertools.product(*map(world.fills, names)):
            path = route
            for name, value in zip(names, values, strict=True):
                path = re.sub(rf"<\w+:{name}>", str(value), path)
            yield f"/{path}"
            for query in QUERIES.get(route, ()):
                yield f"/{path}?{world.query(query)}"


def holds_nothing(answer: Any, world: World, where: object, *, but: str = "") -> None:
    """`but`: the search term, which the answer repeats."""
    shown = b"".join(answer.streaming_content) if answer.streaming else answer.content
    text = shown.decode(errors="replace")
    for secret in {*SECRETS, world.file} - {but}:
        assert secret not in text, (where, secret)


@pytest.mark.slow
@pytest.mark.parametrize(
    "who", ["boss", *(pytest.param(who, marks=pytest.mark.long) for who in ("third", "fourth", "stranger"))]
)
def test_no_address_shows_one_to_others(world: World, who: str) -> None:
    """Third is mentioned in the reply, answered and quoted. Fourth has the same follows. Boss is staff."""
    if who == "boss":
        world.people["boss"] = User.objects.create_superuser("boss", "correct horse battery staple")
    client, app = Client(), Caller(world.people.get(who))
    if who in world.people:
        client.force_login(world.people[who])
    asked = 0
    for address in addresses(world):
        for caller, headers in ((client, {}), (app.client, app.headers)):
            answer = caller.get(address, **headers)
            assert answer.status_code < 500, address
            holds_nothing(answer, world, (who, address), but="quokka" if "quokka" in address else "")
            links = f"/items/{world.items[0].pk}" in address or answer.streaming or b"next=" in answer.content
            assert links or f"/items/{world.items[0].pk}".encode() not in answer.content, (who, address)
            asked += 1
    assert asked > 500


@pytest.mark.slow
@pytest.mark.parametrize("who", ["third", "stranger"])
@pytest.mark.long
def test_nobody_else_acts_on_one(world: World, who: str) -> None:
    client, app = Client(), Caller(world.people.get(who))
    if who in world.people:
        client.force_login(world.people[who])
    named = [str(one) for one in (*(item.pk for item in world.items), world.medium)]
    asked = 0
    for address in addresses(world):
        if not set(address.partition("?")[0].split("/")) & set(named):
            continue
        for method, (caller, headers) in itertools.product(
            ("post", "put", "patch", "delete"), ((client, {}), (app.client, app.headers))
        ):
            answer = getattr(caller, method)(address, "{}", content_type="application/json", **headers)
            assert answer.status_code < 500, (method, address)
            holds_nothing(answer, world, (who, method, address))
            asked += 1
    assert asked > 200
    ids = [item.pk for item in world.items]
    assert Item.objects.filter(pk__in=ids, status="published").count() == len(ids)
    assert not Item.objects.filter(repost_of__in=ids).exists()
    assert not Case.objects.exists()


def test_nobody_quotes_one(world: World) -> None:
    for name, status in (("ann", 403), ("bob", 403), ("third", 404)):
        fields = {"content": {"text": "look"}, "quote_of": str(world.items[0].pk)}
        assert client_of(world.people[name]).post("/api/v1/items", fields).status_code == status


def test_only_its_people_are_notified(world: World) -> None:
    told = {name: {entry.kind for entry in notifications_page(user).items} for name, user in world.people.items()}
    assert told == {"ann": set(), "bob": set(), "third": set(), "fourth": set()}  # Messages counts them
    asked = {name: client_of(user).get("/api/v1/me/notifications/unread").json() for name, user in world.people.items()}
    assert {name: counts["conversations"] for name, counts in asked.items() if counts["conversations"]} == {
        "ann": 1,
        "bob": 2,
    }
    assert {name: counts["requests"] for name, counts in asked.items() if counts["requests"]} == {}


@pytest.mark.slow
def test_its_people_meet_it_in_no_list_but_their_own(world: World) -> None:
    """No list shows it, even to them."""
    ids = [str(item.pk) for item in world.items]
    pages = ["/", "/discover", "/@ann", "/@bob", "/@ann/replies", "/@bob/replies", "/@ann/media", "/tags/marsupials"]
    pages += ["/search?q=wombat", "/search?q=from:ann", "/search?q=%23marsupials"]
    own = ["timeline/home", "users/ann/items", "users/bob/items", "tags/marsupials/items", "search?q=from:ann"]
    theirs = ["timelines/home", "timelines/public", "timelines/tag/marsupials", "trends/statuses"]
    theirs += [f"accounts/{world.people[name].pk}/statuses" for name in ("ann", "bob")]
    for name in ("ann", "bob"):
        client, api, app = Client(), client_of(world.people[name]), Caller(world.people[name])
        client.force_login(world.people[name])
        for page in pages:
            shown = client.get(page).content.decode()
            assert not [one for one in ids if f'id="item-{one}"' in shown], (name, page)
        for path in own:
            assert not [one for one in ids if f'"{one}"' in api.get(f"/api/v1/{path}").content.decode()], (name, path)
        for path in theirs:
            assert not {status["id"] for status in app.get(f"v1/{path}")} & set(ids), (name, path)
        profile = api.get("/api/v1/users/ann").json()
        assert (profile["counts"]["items"], profile["pinned"]) == (0, [])


def test_no_count_holds_one(world: World) -> None:
    for user in (None, *world.people.values()):
        status = Caller(user).get(f"v1/statuses/{world.public.pk}")
        assert (status["replies_count"], status["quotes_count"]) == (0, 0)
        assert Caller(user).get(f"v1/statuses/{world.public.pk}/quotes") == []
        assert Caller(user).get(f"v1/accounts/{world.people['bob'].pk}")["statuses_count"] == 0


def test_streams_tell_its_people_alone(world: World) -> None:
    first, reply, below, _ = (item.pk for item in world.items)
    events = [
        Published(first),
        Published(reply),
        Published(below),
        Edited(reply, "mentioned"),
        Withdrawn(first, "mentioned"),
    ]
    entries = [(Position(1, place), event) for place, event in enumerate(events)]
    watched = (0, first, below, world.public.pk)
    everyone = [Listener(user.pk, item) for user in world.people.values() for item in watched]
    told = {listener for listener, _, _ in news.news_for(everyone, entries)}
    assert {listener.reader for listener in told if listener} == {world.people["ann"].pk, world.people["bob"].pk}
    assert not [one for one in told if one and not one.item]
    made = {user: lists.lists_of(user) for user in world.people.values()}
    hearers = []
    for user, known in made.items():
        streams = [stream_of(name, ALL.split(), user) for name in ("user", "public", "direct")]
        streams.append(stream_of("hashtag", ALL.split(), user, tag="marsupials"))
        streams += [stream_of("list", ALL.split(), user, list_id=str(one.id)) for one in known]
        hearers.append(ClientHearer(user.pk, tuple(streams), False))
    heard = streaming.messages_for(hearers, entries)
    assert {one.reader for one, _, _ in heard} == {world.people["ann"].pk, world.people["bob"].pk}
    assert all(data.startswith(b"event: conversation\n") for _, _, data in heard)


def messages_of(user: User) -> list[dict[str, Any]]:
    target = io.BytesIO()
    write_archive(user, target)
    with zipfile.ZipFile(target) as archive:
        return [json.loads(line) for line in archive.read("conversations.jsonl").splitlines()]


def exported(user: User) -> str:
    target = io.BytesIO()
    write_archive(user, target)
    with zipfile.ZipFile(target) as archive:
        return "".join(archive.read(name).decode() for name in archive.namelist() if name.endswith(("json", "jsonl")))


def test_an_export_holds_what_one_wrote_and_to_whom(world: World) -> None:
    for name in ("third", "fourth"):
        text = exported(world.people[name])
        assert not [one for one in (*SECRETS, world.file, *(str(item.pk) for item in world.items)) if one in text], name
    own = exported(world.people["bob"])
    assert "wombat" in own
    assert '"to":["ann"]' in own
    assert world.file not in own


def test_an_export_holds_the_messages_that_one_can_read(world: World) -> None:
    ann, bob = world.people["ann"], world.people["bob"]
    first, reply, below, quoting = world.items
    rows = messages_of(bob)
    assert [(row["conversation"], row["item_id"], row["by"], row["users"]) for row in rows] == [
        (str(first.pk), str(first.pk), "ann", ["ann"]),
        (str(first.pk), str(reply.pk), "bob", ["ann"]),
        *((str(item.pk), str(item.pk), "ann", ["ann"]) for item in (below, quoting)),
    ]
    assert rows[0]["content"]["text"] == "@bob quokka #marsupials"
    hide_conversation(reader=bob, conversation_id=first.pk)
    for item in (below, quoting):
        items.delete(item=item)
    assert [row["item_id"] for row in messages_of(bob)] == [str(first.pk), str(reply.pk)]
    relations.block(blocker=ann, blocked=bob)
    assert [row["by"] for row in messages_of(bob)] == ["bob"]
    assert messages_of(world.people["third"]) == []


# --- Staff -----------------------------------------------------------------------------------------------
def admin_pages(world: World) -> Iterator[str]:
    ids = [item.pk for item in world.items]
    for model in admin.site._registry:
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        yield base
        for search in ("quokka", "@ann", "#marsupials", str(ids[0]), str(world.medium)):
            yield f"{base}?q={search.replace('#', '%23')}"
    ann = world.people["ann"].pk
    for route, pattern in routes(get_resolver()):
        if route.startswith("admin/") and "(" not in route:
            filled = {re.sub("<[^>]+>", str(pk), route) for pk in (*ids, world.medium, ann)}
            yield from (f"/{one}" for one in (filled if pattern.pattern.converters else [route]))
    for pk in ids:
        yield f"/admin/moderation/case/act/?items={pk}"
        yield f"/admin/accounts/user/{ann}/home/?item={pk}"
    yield f"/admin/moderation/picturerule/add/?medium={world.medium}"


@pytest.mark.slow
@pytest.mark.long
def test_staff_read_one_only_by_a_report(world: World) -> None:
    staff = User.objects.create_superuser("boss", "correct horse battery staple")
    rule = PictureRule(sha256="0" * 64, note="x", medium_id=world.medium)
    hashes.block(rule=rule, by=staff)
    client = logged_in(staff)
    assert client.get("/admin/").status_code == 200  # registers the admin's pages
    asked = 0
    for page in [*admin_pages(world), f"/admin/moderation/picturerule/{rule.pk}/change/"]:
        answer = client.get(page)
        assert answer.status_code < 500, page
        text = answer.content.decode()
        for secret in {*SECRETS, world.file} - {page.partition("q=")[2]}:  # a search repeats its term
            assert secret not in text, (page, secret)
        asked += answer.status_code == 200
    assert asked > 100
    assert client.get(f"/staff/media/{world.medium}/whole").status_code == 404
    first = world.items[0]
    reports.report(item=first, reporter=world.people["bob"], reason="abuse")
    case = client.get(f"/admin/moderation/case/{Case.objects.get(item=first).pk}/change/").content.decode()
    assert "quokka" in case
    assert f"/staff/media/{world.medium}/preview" in case
    assert "wombat" not in case
    assert "wombat" not in client.get(f"/admin/moderation/case/act/?items={world.items[1].pk}").content.decode()
    whole = client.get(f"/staff/media/{world.medium}/whole")
    assert whole.status_code == 200
    whole.close()  # and with it the connection to PostgreSQL


def test_only_its_people_report_one(world: World) -> None:
    for name, status in (("bob", 204), ("third", 404)):
        answer = client_of(world.people[name]).post(f"/api/v1/items/{world.items[0].pk}/report", {"reason": "abuse"})
        assert answer.status_code == status


def test_no_rule_of_moderation_holds_one(world: World, settings: Any) -> None:
    settings.MODERATION_LINK_AGE = timedelta(days=365)
    item = say(world.people["ann"], "@bob https://example.org", visibility=Visibility.MENTIONED)
    assert item.status == "published"
