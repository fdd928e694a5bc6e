import io
import json
import re
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from accounts.models import User
from items.actions import delete, like, publish, repost, undo_repost
from items.models import Item, Status
from items.pages.reading import ago
from items.text import TEXT_LENGTH
from media.captioning import set_captions
from media.models import NEVER, MediaFile
from relations.actions import block, follow
from tests.support.answers import lasting
from tests.support.factories import UserFactory, say
from tests.support.pages import PART, composed, logged_in
from tests.support.picture_posts import posted, sent
from tests.support.pictures import jpeg, mp4, upload
from tests.support.statements import statements
from tests.support.texts import PAYLOADS

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(client: Client) -> Any:
    reader = UserFactory.create(username="reader")
    client.force_login(reader)
    return reader


# --- Publishing ------------------------------------------------------------------------------------------
def test_publishing_goes_on_to_the_item_or_back(client: Client, reader: Any) -> None:
    response = client.post("/items/new", composed("one\r\n\r\ntwo\rthree 中文"))
    item = Item.objects.get()
    assert response["Location"] == f"/items/{item.pk}"
    assert (item.sender, item.text, item.visibility) == (reader, "one\n\ntwo\nthree 中文", "public")
    assert client.post("/items/new", composed(next="/"))["Location"] == "/"


def test_publishing_in_place_gives_a_fresh_composer(client: Client, reader: Any) -> None:
    key = uuid.uuid4().hex
    response = client.post("/items/new", composed(key=key, visibility="mutuals"), **PART)
    assert json.loads(response["HX-Trigger-After-Settle"]) == {"published": {"id": str(Item.objects.get().pk)}}
    assert key not in response.content.decode()
    assert response.content.decode().index("words</p>") > response.content.decode().index(
        'hx-swap-oob="afterbegin:#feed"'
    )
    assert Item.objects.get().visibility == "mutuals"


def test_the_same_form_sent_twice_publishes_once(client: Client, reader: Any) -> None:
    fields = composed()
    for _ in range(2):
        client.post("/items/new", fields)
    assert Item.objects.count() == 1
    client.post("/items/new", fields | {"text": "changed after going back"})
    assert Item.objects.count() == 2


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"text": ""}, "Write something first."),
        ({"text": " \n "}, "Write something first."),
        ({"text": "字" * (TEXT_LENGTH + 1)}, "up to 5000 characters"),
        ({"text": "a\x00b"}, "Null characters"),
        ({"visibility": "everybody"}, "Select a valid choice"),
    ],
)
@pytest.mark.parametrize("headers", [{}, PART])
def test_what_cannot_be_published_is_shown_again(
    client: Client, reader: Any, fields: dict[str, str], words: str, headers: Any
) -> None:
    sent = composed(next="/") | fields
    response = client.post("/items/new", sent, **headers)
    page = response.content.decode()
    assert response.status_code == 422
    assert words in page
    assert sent["key"] in page
    assert ("<html" in page) is not bool(headers)
    assert not Item.objects.exists()


def test_text_of_full_length_passes(client: Client, reader: Any) -> None:
    client.post("/items/new", composed("字" * TEXT_LENGTH))
    assert len(Item.objects.get().text) == TEXT_LENGTH


def test_publishing_is_limited_together_with_the_api(client: Client, reader: Any, settings: Settings) -> None:
    settings.RATES = settings.RATES | {"publish": "2/minute"}
    assert client.get("/items/new").status_code == 200
    client.post("/api/v1/items", {"content": {"text": "one"}}, content_type="application/json")
    assert client.post("/items/new", composed()).status_code == 302
    response = client.post("/items/new", composed())
    assert response.status_code == 429
    assert int(response["Retry-After"]) > 0


# --- Replies ---------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_reply_is_found_where_it_stands(client: Client, reader: Any, other: Any) -> None:
    root = say(other, "root")
    response = client.post("/items/new", composed("first reply", reply_to=root.pk))
    reply = root.replies.get()
    assert response["Location"] == f"/items/{root.pk}#item-{reply.pk}"
    for _ in range(20):
        say(other, reply_to=root)
    response = client.post("/items/new", composed("last reply", reply_to=root.pk))
    page = client.get(response["Location"])
    assert [item.text for item in page.context["page"].items] == ["last reply"]
    assert "First replies" in page.content.decode()


@pytest.mark.slow
def test_replies_are_listed_oldest_first(client: Client, reader: Any, other: Any) -> None:
    root = say(other, "root")
    for number in range(25):
        say(other, f"reply {number}", reply_to=root)
    first = client.get(f"/items/{root.pk}")
    rest = client.get(f"/items/{root.pk}", {"last_id": first.context["page"].last_id}, **PART)
    texts = [item.text for page in (first, rest) for item in page.context["page"].items]
    assert texts == [f"reply {number}" for number in range(25)]


def test_items_that_are_not_seen_cannot_be_replied_to(client: Client, reader: Any, other: Any) -> None:
    hidden = say(other, visibility="self")
    for root in (hidden.pk, 7, -1, 10**30):
        assert client.post("/items/new", composed(reply_to=root)).status_code in (404, 422)
    assert Item.objects.count() == 1


@pytest.mark.slow
def test_a_reply_to_a_reply_is_found_under_it(client: Client, reader: Any, other: Any) -> None:
    root = say(other, "root")
    answered = say(other, "first", reply_to=root)
    response = client.post("/items/new", composed("nested", reply_to=answered.pk))
    nested = answered.replies.get()
    assert response["Location"] == f"/items/{answered.pk}#item-{nested.pk}"
    for address in (f"/items/{root.pk}", f"/items/{answered.pk}"):
        page = client.get(address).content.decode()
        assert page.index(f'id="item-{answered.pk}"') < page.index(f'id="item-{nested.pk}"')
        assert "replying to" not in page


@pytest.mark.slow
def test_a_reply_stands_under_what_it_is_about(client: Client, reader: Any, other: Any) -> None:
    root = say(other, "the root")
    first = say(reader, "the first", reply_to=root)
    second = say(other, "the second", reply_to=first)
    third = say(reader, "the third", reply_to=second)
    say(other, "beneath", reply_to=third)
    response = client.get(f"/items/{third.pk}")
    assert [card.item.text for card in response.context["above"]] == ["the root", "the first", "the second"]
    assert [item.text for item in response.context["page"].items] == ["beneath"]
    page = response.content.decode()
    assert "Show replies in between" not in page
    assert "In reply to a post" not in page
    delete(item=first)
    assert "Show replies in between" in client.get(f"/items/{third.pk}").content.decode()


@pytest.mark.slow
def test_what_a_reply_answers_is_hidden_where_the_reader_may_not_see_it(
    client: Client, reader: Any, other: Any
) -> None:
    root = say(other, "the root")
    third = UserFactory.create(username="third")
    hidden = say(third, "the hidden", reply_to=root)
    reply = say(reader, "mine", reply_to=hidden)
    block(blocker=third, blocked=reader)
    for address in (f"/items/{root.pk}", f"/items/{reply.pk}", "/@reader/replies"):
        page = client.get(address).content.decode()
        assert "mine" in page
        assert "third" not in page
        assert "the hidden" not in page


@pytest.mark.slow
def test_the_composer_of_a_reply_begins_with_what_it_answers(client: Client, reader: Any, other: Any) -> None:
    follow(follower=reader, followee=other)
    follow(follower=other, followee=reader)
    answered = say(other, "for few", visibility="followers")
    page = client.get("/items/new", {"reply_to": answered.pk}).content.decode()
    assert "for few" in page
    part = client.get("/items/new", {"reply_to": answered.pk}, **PART).content.decode()
    assert "<html" not in part
    for form in (page, part):
        assert f'name="reply_to" value="{answered.pk}"' in form
        assert re.search('name="visibility" value="followers"[^>]* checked', form)
    hidden = say(other, visibility="self")
    nobody = client.get("/items/new", {"reply_to": 7})
    for gone in (hidden.pk, 2**53 - 1):
        response = client.get("/items/new", {"reply_to": gone})
        assert (response.status_code, lasting(response)) == (404, lasting(nobody))
    for bad in ("abc", "0", "-1", "1.5", str(2**60), "1_0"):
        assert client.get("/items/new", {"reply_to": bad}).status_code == 400
    reposted, _ = repost(sender=other, item=say(other, "original"))
    assert "original" in client.get("/items/new", {"reply_to": reposted.pk}).content.decode()


@pytest.mark.slow
def test_the_one_who_is_answered_sees_the_reply(client: Client, reader: Any, other: Any) -> None:
    """The answered user may not follow back, so "Followers" would exclude them."""
    follow(follower=reader, followee=other)
    answered = say(other, "for few", visibility="followers")
    page = client.get(f"/items/{answered.pk}").content.decode()
    assert re.search('name="visibility" value="public"[^>]* checked', page)
    client.post("/items/new", composed("heard", reply_to=answered.pk) | {"visibility": "public"})
    theirs = logged_in(other)
    assert "heard" in theirs.get(f"/items/{answered.pk}").content.decode()
    stranger = Client().get(f"/items/{Item.objects.get(reply_to=answered).pk}")
    assert stranger.status_code == 404, "its root is for few"


def test_an_edit_that_is_refused_changes_nothing(client: Client, reader: Any, settings: Any) -> None:
    settings.MODERATION_LINK_AGE = timedelta(days=3)
    own = say(reader, "words")
    body = {"text": "words https://example.org", "visibility": "followers"}
    response = client.post(f"/items/{own.pk}/edit", body)
    assert response.status_code == 422
    assert "t add links to a published post" in response.content.decode()
    own.refresh_from_db()
    assert (own.text, own.visibility, own.status) == ("words", "public", "published")


@pytest.mark.slow
def test_replying_in_place_gives_the_reply_and_the_counts(client: Client, reader: Any, other: Any) -> None:
    root = say(other, "root")
    answered = say(other, "first", reply_to=root)
    response = client.post("/items/new", composed("nested", reply_to=answered.pk), **PART)
    part = response.content.decode()
    assert "replied" in json.loads(response["HX-Trigger-After-Settle"])
    assert part.count("<article") == 1
    assert "nested" in part
    for item, count in ((root, 2), (answered, 1)):
        assert f"hx-swap-oob=\"outerHTML:.acts[data-item='{item.pk}']\"" in part
        assert item.replies.count() == 1
        assert counts_of(client, item)["replies"] == count
    refused = client.post("/items/new", composed("", reply_to=answered.pk), **PART)
    assert refused.status_code == 422
    assert f'name="reply_to" value="{answered.pk}"' in refused.content.decode()


@pytest.mark.slow
@pytest.mark.parametrize("garbage", ["abc", "%s", "<script>", "1" * 400])
def test_a_broken_reply_is_refused(client: Client, reader: Any, garbage: str) -> None:
    for headers in ({}, PART):
        response = client.post("/items/new", composed(reply_to=garbage), **headers)
        assert response.status_code in (404, 422)
        assert "<script>" not in response.content.decode()


# --- Liking and reposting --------------------------------------------------------------------------------
def counts_of(client: Client, item: Item) -> Any:
    return client.get(f"/api/v1/items/{item.pk}").json()["counts"]


@pytest.mark.slow
@pytest.mark.parametrize(("do", "undo", "kind"), [("like", "unlike", "likes"), ("repost", "undo-repost", "reposts")])
def test_acting_on_an_item(client: Client, reader: Any, other: Any, do: str, undo: str, kind: str) -> None:
    item = say(other)
    name = do.replace("-", "_")
    for verb, count, pressed in ((do, 1, "true"), (do, 1, "true"), (undo, 0, "false"), (undo, 0, "false")):
        assert client.post(f"/items/{item.pk}/{verb}")["Location"] == f"/items/{item.pk}"
        back = client.post(f"/items/{item.pk}/{verb}", {"next": "/?last_id=7#item-7"})
        assert back["Location"] == "/?last_id=7#item-7"
        assert client.post(f"/items/{item.pk}/{verb}", {"next": "https://evil.example/"})["Location"] != "https://evil"
        assert counts_of(client, item)[kind] == count
        part = client.post(f"/items/{item.pk}/{verb}", **PART).content.decode()
        assert f"hx-swap-oob=\"outerHTML:.acts[data-item='{item.pk}']\"" in part
        assert re.search(rf'data-act="{name}"[^>]* aria-pressed="{pressed}"', part)
        for address in ("/", f"/items/{item.pk}", "/@other"):
            follow(follower=reader, followee=other)
            assert re.search(rf'data-act="{name}"[^>]* aria-pressed="{pressed}"', client.get(address).content.decode())


@pytest.mark.slow
def test_acting_on_a_repost_acts_on_its_original(client: Client, reader: Any, other: Any) -> None:
    original = say(UserFactory.create(username="writer"), "the original")
    reposted, _ = repost(sender=other, item=original)
    for verb, kind in (("like", "likes"), ("repost", "reposts")):
        before = counts_of(client, original)[kind]
        assert client.post(f"/items/{reposted.pk}/{verb}")["Location"] == f"/items/{original.pk}"
        assert counts_of(client, original)[kind] == before + 1
    assert Item.objects.get(sender=reader).repost_of == original


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["like", "unlike", "repost", "undo-repost"])
def test_items_that_are_not_seen_cannot_be_acted_on(client: Client, reader: Any, other: Any, verb: str) -> None:
    hidden, gone = say(other, visibility="self"), say(other)
    delete(item=gone)
    nobody = client.post(f"/items/7/{verb}")
    for item_id in (hidden.pk, gone.pk, 10**30):
        response = client.post(f"/items/{item_id}/{verb}")
        assert (response.status_code, lasting(response)) == (404, lasting(nobody))
    item = say(other)
    assert client.get(f"/items/{item.pk}/{verb}").status_code == 405
    client.logout()
    assert client.post(f"/items/{item.pk}/{verb}")["Location"] == "/login"
    assert client.post(f"/items/{item.pk}/{verb}", **PART).status_code == 401
    assert counts_of(client, item) == {"likes": 0, "replies": 0, "reposts": 0, "quotes": 0}


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "scope"), [("like", "write"), ("unlike", "write"), ("repost", "publish")])
def test_acting_is_limited_together_with_the_api(
    client: Client, reader: Any, other: Any, settings: Settings, verb: str, scope: str
) -> None:
    settings.RATES = settings.RATES | {scope: "2/minute"}
    item = say(other)
    method, name = ("PUT", "like") if scope == "write" else ("POST", "repost")
    client.generic(method, f"/api/v1/items/{item.pk}/{name}", content_type="application/json")
    assert client.post(f"/items/{item.pk}/{verb}").status_code == 302
    response = client.post(f"/items/{item.pk}/{verb}", **PART)
    assert response.status_code == 429
    assert int(response["Retry-After"]) > 0


@pytest.mark.slow
def test_a_repost_shows_its_original_as_a_card_of_its_own(client: Client, reader: Any, other: Any) -> None:
    writer = UserFactory.create(username="writer", display_name="The Writer")
    original = say(writer, "the original")
    repost(sender=other, item=original)
    follow(follower=reader, followee=other)
    page = client.get("/").content.decode()
    assert '<a class="name" href="/@other"><bdi>other</bdi></a> reposted' in page
    assert "The Writer" in page
    assert page.count("the original") == 1
    repost(sender=UserFactory.create(username="third"), item=original)
    repost(sender=reader, item=original)
    follow(follower=reader, followee=user("third"))
    page = client.get("/").content.decode()
    assert "You and 2 others reposted" in page
    assert page.count("the original") == 1
    assert f'action="/items/{original.pk}/undo-repost"' in page
    undo_repost(sender=reader, item=original)
    page = client.get("/").content.decode()
    assert '<a class="name" href="/@third"><bdi>third</bdi></a> and 1 other reposted' in page
    client.cookies["language"] = "zh-hans"
    assert "和另外 1 人转发了" in client.get("/").content.decode()


def user(username: str) -> Any:
    return User.objects.get(username=username)


def test_strangers_see_counts_and_are_led_to_the_login(client: Client, other: Any) -> None:
    item = say(other)
    like(user=other, item=item)
    page = client.get(f"/items/{item.pk}").content.decode()
    assert f'href="/login?next=%2Fitems%2F{item.pk}"' in page
    assert '<span class="number">1</span>' in page
    assert "undo-repost" not in page
    assert '<form class="acts' not in page


# --- Reading ---------------------------------------------------------------------------------------------
def test_profiles_and_items_are_public(client: Client, other: Any) -> None:
    item = say(other, "for everybody")
    hidden = say(other, "for followers", visibility="followers")
    for address in ("/@other", f"/items/{item.pk}"):
        page = client.get(address).content.decode()
        assert "for everybody" in page
        assert "for followers" not in page
        assert "/items/new" not in page
    assert client.get(f"/items/{hidden.pk}").status_code == 404


@pytest.mark.slow
def test_a_profile_is_paged_without_gap_or_repetition(client: Client, reader: Any, other: Any) -> None:
    items = [say(other, f"number {number}.") for number in range(45)]
    say(other, "a reply", reply_to=items[0])
    seen: list[str] = []
    last_id: str | None = ""
    part: Any = {}
    while last_id is not None:
        response = client.get("/@other", {"last_id": last_id}, **part)
        seen += re.findall(r"number (\d+)\.", response.content.decode())
        page = response.context["page"]
        last_id, part = (page.last_id if page.has_more else None), PART
        say(other, "one more meanwhile")
    assert seen == [str(number) for number in reversed(range(45))]


def test_whom_the_reader_blocks_is_shown_without_items(client: Client, reader: Any, other: Any) -> None:
    item = say(other, "unheard")
    block(blocker=reader, blocked=other)
    page = client.get("/@other").content.decode()
    assert "/@other/unblock" in page
    assert "unheard" not in page
    assert client.get(f"/items/{item.pk}").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_that_people_write_becomes_markup(client: Client, reader: Any, payload: str) -> None:
    reader.display_name = payload[:50]
    reader.bio = payload
    reader.save()
    url = f'https://example.org/"{payload.replace(" ", "+")}'
    item = publish(sender=reader, type="link", title=payload, content={"text": payload, "url": url})
    follow(follower=UserFactory.create(username="other"), followee=reader)
    addresses = ["/", "/@reader", "/@other/following", "/settings"]
    addresses += [f"/items/{item.pk}{path}" for path in ("", "/edit", "/delete")]
    for address in addresses:
        page = client.get(address).content.decode()
        assert "alert(1)</script>" not in page
        assert all(image.startswith('<img class="avatar ') for image in re.findall("<img[^>]*", page))
        assert 'href="javascript' not in page
        assert 'onmouseover="' not in page
        assert "rendered" not in page


def test_links_are_marked_as_not_ours(client: Client, other: Any) -> None:
    item = say(other, "see https://example.org/a_long_way?x=1&y=2\nand 再见")
    page = client.get(f"/items/{item.pk}").content.decode()
    assert '<a href="https://example.org/a_long_way?x=1&amp;y=2" rel="nofollow noopener ugc">' in page
    assert "</a>\nand 再见" in page


def test_times_are_readable_by_people_and_programs(client: Client, other: Any) -> None:
    item = say(other)
    page = client.get(f"/items/{item.pk}").content.decode()
    assert f'<time datetime="{item.created_at:%Y-%m-%dT%H:%M:%S}+00:00' in page
    assert ago(item.created_at) == "now"


@pytest.mark.slow
def test_profiles_and_items_cost_the_same_for_few_and_many(client: Client, reader: Any, other: Any) -> None:
    root = say(other)
    client.get("/settings")  # caches the session
    costs = []
    for count in (1, 15):
        for _ in range(count):
            say(other)
            say(UserFactory.create(), reply_to=root)
            nested = say(other, reply_to=say(UserFactory.create(), reply_to=root))
            like(user=reader, item=nested)
            repost(sender=other, item=say(UserFactory.create()))
        addresses = ("/@other", "/@other/replies", f"/items/{root.pk}", f"/items/{nested.pk}")
        for address in addresses:
            with statements() as seen:
                client.get(address)
            costs.append(len(seen))
    assert costs[:4] == costs[4:]
    # user, profile, items, pins, relation, answered users or live sessions, unread
    assert max(costs) <= 7


@pytest.mark.slow
def test_replies_have_a_tab_of_their_own(client: Client, reader: Any, other: Any) -> None:
    root = say(reader, "the root")
    for number in range(25):
        say(other, f"answer {number}.", reply_to=root)
    say(other, "walrus")
    seen: list[str] = []
    last_id: str | None = ""
    part: Any = {}
    while last_id is not None:
        response = client.get("/@other/replies", {"last_id": last_id}, **part)
        page = response.content.decode()
        seen += re.findall(r"answer (\d+)\.", page)
        assert "walrus" not in page
        assert "replying to @reader" in page
        shown = response.context["page"]
        last_id, part = (shown.last_id if shown.has_more else None), PART
    assert seen == [str(number) for number in reversed(range(25))]
    assert "answer" not in client.get("/@other").content.decode()
    block(blocker=reader, blocked=other)
    assert "answer" not in client.get("/@other/replies").content.decode()
    assert client.get("/@nobody/replies").status_code == 404


@pytest.mark.slow
def test_the_title_of_a_picture_without_words_names_its_sender(media_folder: Path) -> None:
    ann: User = UserFactory.create(username="ann", display_name="Ann <b>")
    silent, spoken = posted(ann, sent(ann), text=""), posted(ann, sent(ann), text="a & b")
    assert "<title>Post by Ann &lt;b&gt; ·" in Client().get(f"/items/{silent.pk}").content.decode()
    assert "<title>Ann &lt;b&gt; wrote: a &amp; b ·" in Client().get(f"/items/{spoken.pk}").content.decode()


@pytest.mark.slow
def test_the_editor_orders_and_describes_pictures_and_warns_of_them(
    client: Client, reader: Any, media_folder: Path
) -> None:
    first, second = (sent(reader, description=words) for words in ("one", "two"))
    item = posted(reader, first, second)
    address = f"/items/{item.pk}/edit"
    editor = client.get(address).content.decode()
    assert editor.index(f'value="{first}"') < editor.index(f'value="{second}"')
    assert 'name="file_1"' not in editor
    change: dict[str, Any] = {
        "media": [second, first],
        "description": ["zwei\r\nZeilen", "one"],
        "focus": ["0.5,-0.5", "0,0"],
        "text": "said",
        "warning": "Spiders",
        "sensitive": "on",
    }
    assert client.post(address, change).status_code == 302
    item.refresh_from_db()
    assert [entry["id"] for entry in item.media] == item.content["media"] == [second, first]
    assert [entry["description"] for entry in item.media] == ["zwei\nZeilen", "one"]
    assert (item.media[0]["x"], item.media[0]["y"]) == (0.5, -0.5)
    assert (item.content["warning"], item.content["sensitive"]) == ("Spiders", True)

    refused = client.post(address, change | {"description": ["x" * 1501, "one"], "warning": ""})
    assert refused.status_code == 422
    assert "1500 characters" in refused.content.decode()
    assert client.post(address, change | {"description": ["a\x00b", "one"], "warning": ""}).status_code == 422
    anew = {"text": "x", "visibility": "public", "media": [sent(reader)], "description": ["a\x00b"]}
    assert client.post("/items/new", anew).status_code == 422
    stranger = sent(UserFactory())
    for others in ([second], [second, first, stranger], [second, stranger], ["x", first]):
        answer = client.post(address, change | {"media": others, "warning": ""})
        assert answer.status_code == 422, others
        assert "have changed" in answer.content.decode()
    item.refresh_from_db()
    assert item.content["warning"] == "Spiders", "all or nothing"

    assert client.post(address, {"text": "anew"}).status_code == 302
    item.refresh_from_db()
    assert item.content == {"text": "anew", "media": [second, first], "warning": "Spiders", "sensitive": True}
    assert client.post(address, {"text": "said", "warning": ""}).status_code == 302
    item.refresh_from_db()
    assert item.content == {"text": "said", "media": [second, first]}


@pytest.mark.parametrize("key", ["a\x00b", "x" * 400])
def test_a_file_with_a_key_that_is_none_is_refused_with_the_form(
    client: Client, reader: Any, media_folder: Path, key: str
) -> None:
    sending = {"text": "x", "visibility": "public", "key": key, "file_1": upload(jpeg())}
    assert client.post("/items/new", sending).status_code == 422
    assert not Item.objects.exists()


@pytest.mark.slow
def test_a_draft_asks_which_of_its_pictures_can_still_be_published(
    client: Client, reader: Any, media_folder: Path
) -> None:
    free, used, hidden, removed, video = (sent(reader, data) for data in (None, None, None, None, mp4()))
    stranger = sent(UserFactory())
    posted(reader, used)
    MediaFile.objects.filter(pk=hidden).update(withdrawn_at=NEVER)
    MediaFile.objects.filter(pk=removed).delete()
    subtitles = b"WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n"
    captioned = set_captions(owner_id=reader.pk, media_id=int(video), file=io.BytesIO(subtitles))
    assert captioned
    for ids, answered in (
        ([free, video], {free: None, video: f"/media/{captioned.files[-1]}"}),
        ([used, hidden, removed, stranger], {}),
        ([free, free, used], {free: None}),
        ([], {}),
    ):
        answer = client.get("/items/new/media", {"ids": ",".join(ids)})
        assert (answer.status_code, answer.json()) == (200, answered)
        assert answer["Cache-Control"] == "private, no-store"
    assert client.get("/items/new/media").json() == {}
    assert Client().get(f"/items/new/media?ids={free}").status_code == 302
    assert Client().get(f"/items/new/media?ids={free}", headers={"X-Reader": "1"}).status_code == 401
    assert client.post(f"/items/new/media?ids={free}").status_code == 405


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        "ids=1,2,3,4,5",
        "ids=1,",
        "ids=,",
        "ids=0",
        "ids=-1",
        "ids=1.5",
        "ids=1_0",
        "ids=\uff11",
        "ids=x",
        "ids=%00",
        f"ids={2**53 + 1}",
        f"ids={'9' * 5000}",
        "ids=1&ids=2",
    ],
)
def test_a_draft_that_asks_for_no_ids_is_refused(client: Client, reader: Any, query: str) -> None:
    assert client.get(f"/items/new/media?{query}").status_code == 400


@pytest.mark.slow
def test_media_have_a_tab_of_their_own(client: Client, reader: Any, other: Any, media_folder: Path) -> None:
    say(other, "only words")
    assert "No pictures or videos yet." in client.get("/@other/media").content.decode()
    shown = posted(other, sent(other, description="A red field"))
    page = client.get("/@other/media").content.decode()
    assert f'id="item-{shown.pk}"' in page
    assert 'aria-label="A red field"' in page
    assert "only words" not in page
    block(blocker=reader, blocked=other)
    assert "A red field" not in client.get("/@other/media").content.decode()


# --- Editing and deleting ----------------------------------------------------------------------------------
def test_editing_changes_the_text_and_keeps_the_rest(client: Client, reader: Any) -> None:
    item = publish(sender=reader, type="link", content={"text": "befor", "url": "https://example.org/", "extra": [1]})
    assert "befor" in client.get(f"/items/{item.pk}/edit").content.decode()
    assert client.post(f"/items/{item.pk}/edit", {"text": "before\r\nafter"})["Location"] == f"/items/{item.pk}"
    item.refresh_from_db()
    assert item.content == {"text": "before\nafter", "url": "https://example.org/", "extra": [1]}


@pytest.mark.slow
def test_editing_who_can_see_it(client: Client, reader: Any, other: Any) -> None:
    item = say(reader, "for all")
    address = f"/items/{item.pk}/edit"
    for visibility in ("self", "mutuals", "public", "followers"):
        client.post(address, {"text": f"for {visibility}", "visibility": visibility})
        item.refresh_from_db()
        assert (item.text, item.visibility) == (f"for {visibility}", visibility)
        page = client.get(address).content.decode()
        assert re.search(f'name="visibility" value="{visibility}"[^>]* checked', page)
    assert client.post(address, {"text": "x", "visibility": "everybody"}).status_code == 422
    reposted, _ = repost(sender=reader, item=say(other))
    for method in (client.get, client.post):
        assert method(f"/items/{reposted.pk}/edit").status_code == 403


@pytest.mark.slow
def test_editing_in_place(client: Client, reader: Any) -> None:
    item = publish(sender=reader, title="A title", content={"text": "before"})
    address = f"/items/{item.pk}/edit"
    editor = client.get(address, **PART).content.decode()
    assert "<html" not in editor
    assert "A title" in editor
    response = client.post(address, {"title": "A title", "text": " "}, **PART)
    assert response.status_code == 422
    assert "is empty" in response.content.decode()
    part = client.post(address, {"title": "Another title", "text": "after"}, **PART).content.decode()
    assert part.count("<article") == 1
    assert "Another title" in part
    assert "after" in part
    cancelled = client.get(f"/items/{item.pk}", **PART).content.decode()
    assert cancelled.count("<article") == 1


@pytest.mark.slow
def test_editing_on_its_own_page_leads_to_the_item(client: Client, reader: Any) -> None:
    item = publish(sender=reader, content={"text": "before"})
    there = {"HTTP_HX_TARGET": "editor", **PART}
    assert client.post(f"/items/{item.pk}/edit", {"text": "after"}, **there)["HX-Redirect"] == f"/items/{item.pk}"


@pytest.mark.slow
def test_the_write_page_leads_on_after_publishing(client: Client, reader: Any) -> None:
    fields = {"text": "words", "visibility": "public"}
    there = {"HTTP_HX_TARGET": "write", **PART}
    assert client.post("/items/new", fields | {"next": "/@reader"}, **there)["HX-Redirect"] == "/@reader"
    for target in ("", "//elsewhere.example/", "/items/new"):
        response = client.post("/items/new", fields | {"next": target}, **there)
        assert response["HX-Redirect"] == f"/items/{Item.objects.latest('id').pk}"
    root = Item.objects.latest("id")
    reply = client.post("/items/new", fields | {"reply_to": root.pk}, **there)
    assert reply["HX-Redirect"] == f"/items/{root.pk}#item-{Item.objects.latest('id').pk}"
    page = client.get("/items/new?next=/@reader").content.decode()
    assert re.search(r'<a class="button quiet-button gives-up" href="/@reader" data-discard', page)


def test_a_reply_below_the_whole_item_comes_with_an_empty_composer(client: Client, reader: Any, other: Any) -> None:
    root = say(other)
    fields = {"text": "an answer", "visibility": "public", "reply_to": root.pk}
    part = client.post("/items/new", fields, HTTP_HX_TARGET="thread", **PART).content.decode()
    assert part.index('id="thread"') < part.index('hx-swap-oob="beforeend:#feed"') < part.index("an answer")


@pytest.mark.slow
def test_deleting_asks_first_and_hides(client: Client, reader: Any) -> None:
    item = say(reader, "regretted")
    address = f"/items/{item.pk}/delete"
    assert "regretted" in client.get(address).content.decode()
    assert Item.objects.get().status == Status.PUBLISHED
    assert "Deleted." in client.post(address, follow=True).content.decode()
    assert Item.objects.get().status == Status.DELETED
    nobody = lasting(client.get("/items/1"))
    for gone in (f"/items/{item.pk}", address, f"/items/{item.pk}/edit"):
        response = client.get(gone)
        assert (response.status_code, lasting(response)) == (404, nobody)


@pytest.mark.slow
def test_deleting_in_place_leaves_nothing(client: Client, reader: Any) -> None:
    item = say(reader)
    response = client.post(f"/items/{item.pk}/delete", **PART)
    assert (response.status_code, response.content) == (200, b"")
    assert Item.objects.get().status == Status.DELETED


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["edit", "delete"])
def test_only_the_sender_changes_an_item(client: Client, reader: Any, other: Any, verb: str) -> None:
    item, hidden = say(other), say(other, visibility="self")
    for method in (client.get, client.post):
        assert method(f"/items/{item.pk}/{verb}").status_code == 403
        assert method(f"/items/{hidden.pk}/{verb}").status_code == 404
    client.logout()
    assert client.get(f"/items/{item.pk}/{verb}")["Location"].startswith("/login")
    assert client.post(f"/items/{item.pk}/{verb}")["Location"] == "/login"
    assert Item.objects.filter(status=Status.PUBLISHED).count() == 2


@pytest.mark.slow
def test_acts_lead_back_to_the_entry_on_the_page_that_they_are_in(client: Client, reader: Any, other: Any) -> None:
    item = say(other)
    page = client.get(f"/@other?last_id={item.pk + 1}").content.decode()
    back = f"/@other?last_id={item.pk + 1}"
    assert re.search(rf'<form id="acts" .*name="next" value="{re.escape(back)}"', page)
    (like,) = re.findall(rf'<button[^>]*formaction="/items/{item.pk}/like"[^>]*>', page)
    assert 'form="acts"' in like
    assert client.post(f"/items/{item.pk}/like", {"next": back})["Location"] == f"{back}#item-{item.pk}"
    answer = client.post(f"/items/{item.pk}/unlike", {"next": back, "entry": "17"})
    assert answer["Location"] == f"{back}#item-17", "of a repost that shows it"
    assert client.post(f"/items/{item.pk}/like", {"next": back, "entry": '"x'})["Location"] == f"{back}#item-{item.pk}"
    assert client.post(f"/items/{item.pk}/like", {"next": "//evil.example/"})["Location"] == f"/items/{item.pk}"
