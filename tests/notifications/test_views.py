from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from django.utils import translation
from django.utils.html import strip_tags

from accounts.cards import UserCard
from accounts.models import User
from items import actions as items
from items.hydrate import hydrate
from notifications import actions
from notifications.feed import Entry, notifications_page, unread_count
from notifications.models import CHOOSABLE, Notification, ReadMark, Silenced
from notifications.sentences import sentence
from notifications.views import FILTERS
from relations import actions as relations
from relations.models import Follow
from tests.support.factories import UserFactory, say
from tests.support.pages import PART
from tests.support.picture_posts import posted, sent
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

PAGE = "/notifications"


@pytest.fixture
def reader(client: Client) -> User:
    reader = UserFactory(username="reader")
    client.force_login(reader)
    return reader


@pytest.fixture
def other() -> User:
    return UserFactory(username="other", display_name="<b>Other</b>")


def page(client: Client, address: str = PAGE, **more: Any) -> str:
    response = client.get(address, **more)
    assert response.status_code == 200
    return str(response.content.decode())


def test_strangers_are_asked_to_sign_in(client: Client) -> None:
    assert client.get(PAGE)["Location"] == "/login?next=%2Fnotifications"
    assert client.get(f"{PAGE}/unread", **PART).status_code == 401
    assert 'id="unread"' not in client.get("/login").content.decode()


def test_it_says_what_happened(client: Client, reader: User, other: User) -> None:
    post = say(reader, "my <i>words</i>")
    items.like(user=other, item=post)
    say(other, "an answer", reply_to=post)
    shown = page(client)
    assert '<a class="name" href="/@other"><bdi>&lt;b&gt;Other&lt;/b&gt;</bdi></a> liked your post' in shown
    assert "&lt;/b&gt;</bdi></a> replied" in shown
    assert f'<a href="/items/{post.pk}">my &lt;i&gt;words&lt;/i&gt;</a>' in shown
    assert "Nothing yet" not in shown


def test_nothing_yet(client: Client, reader: User) -> None:
    assert "Nothing yet" in page(client)
    assert "No replies or mentions" in page(client, f"{PAGE}/mentions")
    assert not ReadMark.objects.exists()


@pytest.mark.slow
def test_opening_the_page_marks_what_it_shows_as_read(
    client: Client, reader: User, other: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(other, "@reader one")
    mark_read = actions.mark_read

    def late(**fields: Any) -> None:
        say(other, "@reader two")  # arrives while the page is made
        mark_read(**fields)

    monkeypatch.setattr(actions, "mark_read", late)
    shown = page(client)
    assert shown.count('class="item notice unread"') == 1
    assert "1 unread notification<" in shown
    monkeypatch.undo()
    shown = page(client)
    assert shown.count('class="item notice unread"') == 1
    assert shown.count('class="item notice"') == 1
    assert "unread notification" not in shown
    assert 'class="item notice unread"' not in page(client)


@pytest.mark.parametrize(
    ("address", "more"),
    [
        ("/", {}),
        (f"{PAGE}/mentions", {}),
        (f"{PAGE}/unread", {}),
        (f"{PAGE}?last_id=5", {}),
        (PAGE, {"HTTP_SEC_PURPOSE": "prefetch;prerender"}),
    ],
)
def test_nothing_else_marks_as_read(client: Client, reader: User, other: User, address: str, more: Any) -> None:
    say(other, "@reader")
    page(client, address, **more)
    client.head(PAGE)
    assert unread_count(reader).unread == 1


@pytest.mark.slow
def test_the_badge(client: Client, reader: User, other: User) -> None:
    assert 'hx-trigger="notification from:body' in page(client, "/")
    assert "unread notification" not in page(client, "/")
    for number in range(3):
        say(other, f"@reader {number}")
    for address in ("/", f"{PAGE}/unread"):
        shown = page(client, address)
        assert '<span class="loud" aria-hidden="true">3</span>' in shown
        assert "3 unread notifications" in shown
    for number in range(97):
        say(other, f"@reader {number}")
    shown = page(client, "/")
    assert '<span class="loud" aria-hidden="true">99+</span>' in shown
    assert "more than 99 unread notifications" in shown


def test_the_pill_counts_what_came_since_the_page(client: Client, reader: User, other: User) -> None:
    say(other, "@reader one")
    since = notifications_page(reader).newest
    news = f"{PAGE}/news?since_id={since}"
    assert client.get(f"{news}&shows=0", **PART).status_code == 204
    say(other, "@reader two")
    items.like(user=other, item=say(reader))
    shown = client.get(f"{news}&shows=0", **PART)
    assert (shown.status_code, "2 new" in shown.content.decode()) == (200, True)
    assert client.get(f"{news}&shows=2", **PART).status_code == 204
    assert "1 new" in client.get(f"{news}&tab=conversations&shows=0", **PART).content.decode()


def test_only_full_pages_count(client: Client, reader: User) -> None:
    with statements() as seen:
        client.get("/new")
    assert not any("notifications_" in one for one in seen)


def test_replies_and_mentions_have_a_page_of_their_own(client: Client, reader: User, other: User) -> None:
    post = say(reader)
    items.like(user=other, item=post)
    relations.follow(follower=other, followee=reader)
    say(other, "an answer", reply_to=post)
    say(other, "hello @reader")
    shown = page(client, f"{PAGE}/mentions")
    assert shown.count("<article") == 2
    assert "an answer" in shown
    assert "hello @reader" in shown
    assert f'href="{PAGE}/mentions" aria-current="page"' in shown


@pytest.mark.slow
def test_it_goes_on(client: Client, reader: User, other: User) -> None:
    for number in range(45):
        say(other, f"@reader number{number}.")
    shown, address, pages = "", PAGE, 0
    while address:
        part = page(client, address, **(PART if pages else {}))
        pages += 1
        shown += part
        found = notifications_page(reader, last_id=int(address.partition("=")[2] or 2**53 - 1))
        address = f"{PAGE}?last_id={found.last_id}" if found.has_more else ""
        assert (not address) or f'href="{address}"' in part
        assert ("<html" in part) == (pages == 1)
    assert pages == 3
    assert [shown.count(f"number{number}.") for number in range(45)] == [1] * 45
    assert "Newest first" in page(client, f"{PAGE}?last_id=5")


def test_bad_positions(client: Client, reader: User) -> None:
    for query in ("last_id=abc", "last_id=0", "last_id=1&last_id=2", f"last_id={2**60}"):
        assert client.get(f"{PAGE}?{query}").status_code == 400
    assert client.post(PAGE).status_code == 405


@pytest.mark.slow
def test_it_costs_the_same_for_few_and_many(client: Client, reader: User, other: User) -> None:
    client.get("/settings")  # caches the session
    costs = []
    for count in (1, 12):
        for _ in range(count):
            post = say(reader)
            for fan in UserFactory.create_batch(3):
                items.like(user=fan, item=post)
            say(other, "@reader")
        with statements() as seen:
            client.get(PAGE)
        costs.append(len(seen))
    assert costs[0] == costs[1] <= 7, seen  # user, list, bodies, mark, counts for stream and badge


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "capped", "words"),
    [
        (1, False, "A liked your post"),
        (2, False, "A and B liked your post"),
        (3, False, "A and 2 others liked your post"),
        (14, False, "A and 13 others liked your post"),
        (100, True, "A and more than 99 others liked your post"),
    ],
)
def test_how_many_are_named(reader: User, other: User, count: int, capped: bool, words: str) -> None:
    items.like(user=other, item=say(reader))
    (entry,) = notifications_page(reader).items
    cards = [UserCard(str(number), name, name, False) for number, name in enumerate("ABC")]
    entry.count, entry.capped, entry.actors = count, capped, cards[:count]
    said = sentence(entry)
    for name in "ABC":
        said = said.replace(f'<a class="name" href="/@{name}"><bdi>{name}</bdi></a>', name)
    assert said == words


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_kind_is_said(reader: User, other: User, language: str) -> None:
    post = say(reader)
    reply = say(reader, reply_to=post)
    for item in (post, reply):
        items.like(user=other, item=item)
        items.repost(sender=other, item=item)
    say(other, reply_to=post)
    say(other, "@reader")
    say(other, quote_of=post)
    relations.follow(follower=other, followee=reader)
    with translation.override(language):
        entries: list[Entry] = notifications_page(reader).items
        said = {sentence(entry) for entry in entries}
    assert len(said) == 8
    assert all("/@other" in one for one in said)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "words"),
    [(1, "Bob 赞了你的帖子"), (2, "Bob 和 Bob 赞了你的帖子"), (30, "Bob 和另外 29 人赞了你的帖子")],
)
def test_chinese_has_spaces_beside_names_only(reader: User, other: User, count: int, words: str) -> None:
    items.like(user=other, item=say(reader))
    (entry,) = notifications_page(reader).items
    entry.count, entry.actors = count, [UserCard("1", "bob", "Bob", False)] * min(count, 3)
    with translation.override("zh-hans"):
        assert strip_tags(sentence(entry)) == words


@pytest.mark.slow
def test_the_settings_keep_the_kinds_that_are_wanted(client: Client, reader: User, other: User) -> None:
    address = "/settings/notifications"
    assert page(client, address).count(" checked") == len(CHOOSABLE)
    answer = client.post(address, {"kinds": ["follow", "reply", "mention"]})
    assert (answer.status_code, answer["Location"]) == (302, address)
    kept = ["follow_accepted", "follow_request", "like", "live", "poll", "post", "quote", "repost"]
    assert Silenced.objects.get(user=reader).kinds == kept
    assert page(client, address).count(" checked") == 3
    relations.follow(follower=other, followee=reader)
    items.like(user=other, item=say(reader))
    assert unread_count(reader).unread == 1
    assert "liked your post" not in page(client)
    for odd in ("warning", "nothing"):
        assert client.post(address, {"kinds": ["follow", odd]}).status_code == 422
    assert Silenced.objects.get(user=reader).kinds == kept
    client.post(address, {})
    assert page(client, address).count(" checked") == 0
    client.post(address, {"kinds": [kind.value for kind in CHOOSABLE]})
    assert not Silenced.objects.exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_entries_show_a_small_picture(client: Client, reader: User, other: User, media_folder: object) -> None:
    def page() -> str:
        client.get(PAGE)
        with statements() as asked:
            shown = client.get(PAGE).content.decode()
        counts.append(len(asked))
        return shown

    counts: list[int] = []
    items.like(user=other, item=say(reader))
    assert "thumb" not in page()
    open_one = posted(reader, sent(reader, description="a <red> square"), sent(reader))
    items.like(user=other, item=open_one)
    shown = page()
    (entry,) = hydrate([open_one.pk], reader)
    assert shown.count(entry.media[0].preview_url) == 1
    assert entry.media[1].preview_url not in shown
    assert 'alt="a &lt;red&gt; square"' in shown
    assert ">+1</bdi>" in shown
    assert "A post without text" in shown
    for content in ({"sensitive": True}, {"warning": "spiders", "text": "many legs"}):
        veiled = posted(reader, sent(reader, description="a secret"), **content)
        items.like(user=other, item=veiled)
        shown = page()
        (entry,) = hydrate([veiled.pk], reader)
        assert entry.media[0].preview_url not in shown
        assert entry.media[0].url not in shown
        assert "a secret" not in shown
        assert 'class="ground"' in shown
    items.reject(item=open_one)
    assert "a &lt;red&gt; square" in page()  # the owner still sees it
    assert len(set(counts)) == 1


def test_the_page_shows_one_kind_alone(client: Client, reader: User, other: User) -> None:
    post = say(reader, "my post")
    items.like(user=other, item=post)
    items.repost(sender=other, item=post)
    say(other, "look", quote_of=post)
    relations.follow(follower=other, followee=reader)
    words = {"likes": "liked your", "reposts": "reposted your", "quotes": "quoted your", "follows": "followed you"}
    for group in FILTERS:
        shown = page(client, f"{PAGE}/{group}")
        assert shown.count("<article") == int(group in words), group
        assert words.get(group, "Nothing") in shown
        assert f'href="{PAGE}" aria-current="page" title="Show all"' in shown
    assert page(client, f"{PAGE}/news?since_id=1&tab=likes").count("1 new") == 1
    assert page(client, f"{PAGE}/news?since_id=1&tab=odd").count("4 new") == 1
    assert client.get(f"{PAGE}/warnings").status_code == 404


def test_the_pages_of_one_kind_are_walked(client: Client, reader: User) -> None:
    for user in UserFactory.create_batch(5):
        relations.follow(follower=reader, followee=user)
        actions.notify_of_acceptance(follower=reader, followee=user)
        relations.follow(follower=user, followee=reader)
        items.like(user=user, item=say(reader))
        Notification.objects.filter(kind__startswith="follow").update(day=F("day") - timedelta(days=1))
        Follow.objects.update(created_at=F("created_at") - timedelta(days=1))
    seen: list[str] = []
    last_id = None
    while True:
        found = notifications_page(reader, last_id=last_id, limit=2, group="follows")
        seen += [entry.id for entry in found.items]
        if not found.has_more:
            break
        last_id = int(found.last_id or 0)
    assert seen == sorted(seen, key=int, reverse=True)
    assert len(set(seen)) == Notification.objects.filter(recipient=reader, kind__startswith="follow").count()
