import time
from collections.abc import Callable
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db.models.functions import Now
from PIL import Image

from accounts.models import User
from feedsite import celery
from items import actions, purge
from items.bodies import LinkCardBody
from items.filters import filters
from items.hydrate import hydrate
from items.link_cards import actions as link_cards
from items.models import CardState, Item, LinkCard, RefusedHost, Status, Visibility
from media.models import MediaFile, Use
from media.sweeping import sweep as sweep_media
from tests.support.api import API, client_of
from tests.support.at_once import at_once
from tests.support.factories import say
from tests.support.far_servers import FarServer, answer, dripping, moved
from tests.support.picture_posts import sent
from tests.support.pictures import files_of, jpeg, photo
from tests.support.statements import statements
from tests.support.workers import Workers
from web import outbound

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_folder"), pytest.mark.slow]

PAGE = (
    b'<title>A page</title><meta property="og:description" content="Its words">'
    b'<meta property="og:site_name" content="Far"><meta property="og:image" content="/p.jpg">'
)


@pytest.fixture(autouse=True)
def work(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Run the enqueued card tasks as a worker would."""
    tasks = (link_cards.assign_card, link_cards.read_waiting, link_cards.remove_refused)
    workers = Workers({task.name: task.run for task in tasks}, drops_others=True)
    monkeypatch.setattr(celery.app, "send_task", workers.send_task)

    def do() -> None:
        link_cards.read_waiting.delay()  # as beat does
        workers.work()

    return do


def card(item: Item, reader: Any = None) -> LinkCardBody | None:
    (shown,) = hydrate([item.pk], reader or AnonymousUser())
    return shown.link_card


def linking(sender: User, far: FarServer, path: str = "/", words: str = "look", **fields: Any) -> Item:
    return say(sender, f"{words} {far.url(path)}", **fields)


# --- Cards -----------------------------------------------------------------------------------------------
def test_a_card(ann: User, far: FarServer, work: Callable[[], None], media_folder: Path) -> None:
    far.rules |= {"/": answer(PAGE), "/p.jpg": answer(jpeg(1200, 630), kind="image/jpeg")}
    said = linking(ann, far, "/#part")
    assert card(said) is None
    assert not far.paths, "a request asks no server"
    work()
    shown = card(said)
    assert shown is not None
    assert (shown.url, shown.title, shown.description, shown.site) == (far.url("/"), "A page", "Its words", "Far")
    assert shown.picture is not None
    assert (shown.picture.meta.original.width, shown.picture.meta.small.width) == (1200, 320)
    assert far.paths == ["/", "/p.jpg"]
    row = MediaFile.objects.get()
    assert (row.use, row.owner_id) == (Use.LINK, 0)
    assert len(files_of(media_folder)) == 5


def test_over_the_api(ann: User, far: FarServer, work: Callable[[], None]) -> None:
    far.rules["/"] = answer(b"<title>A page</title>")
    client = client_of(ann)
    told = client.post(f"{API}/items", {"content": {"text": far.url("/")}}).json()
    assert told["link_card"] is None
    work()
    told = client.get(f"{API}/items/{told['id']}").json()
    assert told["link_card"] == {
        "url": far.url("/"), "title": "A page", "description": "", "site": "127.0.0.1", "picture": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "visibility", [Visibility.FOLLOWERS, Visibility.MUTUALS, Visibility.SELF, Visibility.MENTIONED]
)
def test_only_public_items_have_their_links_asked(
    ann: User, bob: User, far: FarServer, work: Callable[[], None], visibility: Visibility
) -> None:
    far.rules["/"] = answer(PAGE)
    said = linking(ann, far, words="@bob", visibility=visibility)
    work()
    actions.edit(item=said, content={"text": f"again {far.url('/')}"})
    work()
    link_cards.assign_card(item_id=said.pk)  # a task enqueued while it was public
    work()
    assert not far.paths
    assert not LinkCard.objects.exists()


def test_a_public_item_that_is_narrowed_before_the_worker_comes(
    ann: User, far: FarServer, work: Callable[[], None]
) -> None:
    said = linking(ann, far)
    actions.change_visibility(item=said, visibility=Visibility.SELF)
    work()
    assert not far.paths


def test_items_without_a_card(ann: User, far: FarServer, work: Callable[[], None], settings: Any) -> None:
    quoted = say(ann)
    linking(ann, far, quote_of=quoted)
    actions.publish(sender=ann, type="image", content={"media": [sent(ann)], "text": f"see {far.url('/')}"})
    settings.SITE_URL = "https://here.example"
    say(ann, f"https://here.example/items/1 {far.url('/')}")  # the first link is to this site
    actions.repost(sender=ann, item=quoted)
    work()
    settings.LINK_CARDS = False
    linking(ann, far)
    work()
    assert not far.paths


def test_a_link_item_and_the_first_of_many(ann: User, far: FarServer, work: Callable[[], None]) -> None:
    far.rules |= {"/1": answer(b"<title>One</title>"), "/2": answer(b"<title>Two</title>")}
    said = linking(ann, far, "/1", words="@nobody #tag")
    actions.edit(item=said, content={"text": f"{far.url('/1')} {far.url('/2')}"})
    work()
    assert far.paths == ["/1"]
    assert (found := card(said)) is not None
    assert found.title == "One"


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("https://Far.Example/a", "https://far.example/a"),
        ("https://far.example:443/a#b", "https://far.example:443/a"),
        ("https://far.example/ü?q=微", "https://far.example/%C3%BC?q=%E5%BE%AE"),
        ("www.far.example/", "https://www.far.example/"),
        (f"https://far.example/{'x' * 3_000}", ""),
        ("https://testserver/x", ""),
    ],
)
def test_links(settings: Any, url: str, wanted: str) -> None:
    settings.SITE_URL = "https://testserver"
    assert link_cards.first_link({"text": f"see {url} there"}) == wanted


# --- Once a day ------------------------------------------------------------------------------------------
def test_one_page_for_the_whole_site(ann: User, bob: User, far: FarServer, work: Callable[[], None]) -> None:
    far.rules["/"] = answer(PAGE)
    said = [linking(one, far) for one in (ann, bob, ann)]
    work()
    later = linking(bob, far)
    work()
    assert far.paths == ["/", "/p.jpg"]
    assert all(card(item) for item in [*said, later])
    LinkCard.objects.update(asked_at=Now() - timedelta(hours=25))
    far.rules["/"] = answer(b"<title>New</title>")
    work()
    assert len(far.paths) == 2, "nobody links to it"
    linking(ann, far)
    work()
    assert far.paths[2:] == ["/"]
    assert (found := card(said[0])) is not None
    assert (found.title, found.picture) == ("New", None)


def test_failures_are_remembered(ann: User, far: FarServer, work: Callable[[], None]) -> None:
    for _time in range(3):
        said = linking(ann, far, "/none")
        work()
    assert far.paths == ["/none"]
    assert card(said) is None
    assert LinkCard.objects.get().error == "status 404"


def test_workers_at_once(ann: User, far: FarServer, work: Callable[[], None], settings: Any) -> None:
    """Any number of workers ask a page once, and only a few pages at a time."""
    settings.LINK_CARDS_AT_ONCE = 1
    running, most = 0, 0

    def slowly(say: Any) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        time.sleep(0.3)
        answer(b"<title>Slow</title>")(say)
        running -= 1

    far.rules |= {f"/{number}": slowly for number in range(3)}
    items = [linking(ann, far, f"/{number}") for number in range(3)]
    for item in items:
        link_cards.assign_card(item_id=item.pk)
    at_once(*[link_cards.read_waiting] * 4)
    work()
    assert sorted(far.paths) == ["/0", "/1", "/2"]
    assert most == 1
    assert all(card(item) for item in items)


def test_a_worker_that_died(ann: User, far: FarServer, work: Callable[[], None]) -> None:
    far.rules |= {"/": answer(PAGE), "/2": answer(PAGE)}
    linking(ann, far)
    linking(ann, far, "/2")
    for item in Item.objects.all():
        link_cards.assign_card(item_id=item.pk)
    LinkCard.objects.filter(url=far.url("/")).update(state=CardState.ASKED, asked_at=Now())
    work()
    assert not far.paths
    LinkCard.objects.filter(state=CardState.ASKED).update(asked_at=Now() - timedelta(minutes=2))
    work()
    assert "/2" in far.paths


def test_a_host_is_not_flooded(ann: User, far: FarServer, work: Callable[[], None]) -> None:
    for number in range(link_cards.A_MINUTE_FOR_A_HOST + 5):
        linking(ann, far, f"/{number}")
    work()
    assert len(far.paths) == link_cards.A_MINUTE_FOR_A_HOST


def test_a_link_that_was_gone_before_the_worker_came(
    ann: User, bob: User, far: FarServer, work: Callable[[], None]
) -> None:
    """Else whoever links first and deletes at once takes the card from all others for a day."""
    far.rules["/"] = answer(PAGE)
    said = linking(ann, far)
    link_cards.assign_card(item_id=said.pk)
    actions.delete(item=said)
    work()
    assert not far.paths
    theirs = linking(bob, far)
    work()
    assert card(theirs) is not None


@pytest.mark.long
def test_who_links_much_to_slow_pages(
    ann: User, bob: User, far: FarServer, work: Callable[[], None], settings: Any
) -> None:
    """The newest sender pays. A page that was put off is read for the next sender."""
    settings.RATES = settings.RATES | {"outside_member": "5500/hour"}
    far.rules["/slow"] = dripping(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>", b"x")
    far.rules["/"] = answer(PAGE)
    linking(ann, far, "/slow")
    work()
    mine = linking(ann, far)
    work()
    assert far.paths == ["/slow"]
    assert LinkCard.objects.get(url=far.url("/")).error == "over its budget"
    linking(bob, far)
    work()
    assert far.paths[1:2] == ["/"]
    assert card(mine)


# --- Servers that lie ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "rule",
    [
        moved("http://169.254.169.254/latest/meta-data/"),
        moved("http://[::ffff:10.0.0.1]/"),
        moved("/"),
        answer(b"x" * 10, kind="application/pdf"),
        answer(b"<p>no title"),
        answer(b"\x00" * 100_000),
        answer(b"<title>T</title><p " + b"".join(b"a%d " % number for number in range(1_000)) + b">"),
        dripping(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>T</title>", b"x"),
    ],
)
def test_pages_that_get_no_card(
    ann: User, far: FarServer, work: Callable[[], None], monkeypatch: pytest.MonkeyPatch, rule: Any
) -> None:
    monkeypatch.setattr(outbound, "SECONDS", 1.0)
    far.rules["/"] = rule
    said = linking(ann, far)
    work()
    assert card(said) is None
    assert LinkCard.objects.get().error
    assert LinkCard.objects.get().state == CardState.DONE


def bomb() -> bytes:
    data = BytesIO()
    Image.new("1", (4_000, 4_000)).save(data, "PNG")
    return data.getvalue()


@pytest.mark.parametrize(
    "rule",
    [
        answer(b"none", status="404 Not Found"),
        answer(b"<svg onload='alert(1)'/>", kind="image/svg+xml"),
        answer(b"<html>", kind="image/jpeg"),
        answer(jpeg()[:300], kind="image/jpeg"),
        answer(bomb(), kind="image/png"),
        answer(photo() + bytes(1 << 20), kind="image/jpeg"),
        moved("http://10.0.0.1/p.jpg"),
    ],
)
def test_pictures_that_are_not_shown(
    ann: User, far: FarServer, work: Callable[[], None], media_folder: Path, settings: Any, rule: Any
) -> None:
    settings.MEDIA_PIXELS = 15_000_000  # a bomb of more takes seconds to make
    far.rules |= {"/": answer(PAGE), "/p.jpg": rule}
    said = linking(ann, far)
    work()
    found = card(said)
    assert found is not None
    assert (found.title, found.picture) == ("A page", None)
    assert not files_of(media_folder)
    assert LinkCard.objects.get().error.startswith("picture:")


@pytest.mark.parametrize("kind", ["image/jpg", "image/x-png", "application/octet-stream", ""])
def test_pictures_of_other_types(ann: User, far: FarServer, work: Callable[[], None], kind: str) -> None:
    far.rules |= {"/": answer(PAGE), "/p.jpg": answer(jpeg(), kind=kind)}
    said = linking(ann, far)
    work()
    assert (found := card(said)) is not None
    assert found.picture is not None


@pytest.mark.parametrize(
    "first",
    [
        answer(b"none", status="404 Not Found"),
        answer(b"<html>", kind="image/png"),
        answer(jpeg(1, 1), kind="image/jpeg"),
        moved("http://10.0.0.1/p.jpg"),
    ],
)
def test_the_second_picture_if_the_first_cannot_be_shown(
    ann: User, far: FarServer, work: Callable[[], None], first: Any
) -> None:
    page = b'<title>A page</title><meta property="og:image" content="/1"><meta name="twitter:image:src" content="/2 b">'
    far.rules |= {"/": answer(page), "/1": first, "/2%20b": answer(jpeg(64, 48), kind="image/jpeg")}
    said = linking(ann, far)
    work()
    assert far.paths == ["/", "/1", "/2%20b"]
    assert (found := card(said)) is not None
    assert found.picture is not None
    assert found.picture.meta.original.width == 64
    assert LinkCard.objects.get().error == ""


def test_a_dot_is_no_picture(ann: User, far: FarServer, work: Callable[[], None], media_folder: Path) -> None:
    far.rules |= {"/": answer(PAGE), "/p.jpg": answer(jpeg(1, 1), kind="image/jpeg")}
    said = linking(ann, far)
    work()
    assert (found := card(said)) is not None
    assert found.picture is None
    MediaFile.objects.update(created_at=Now() - timedelta(days=2))
    sweep_media()
    assert not files_of(media_folder)


def test_a_picture_at_an_address_that_is_none(ann: User, far: FarServer, work: Callable[[], None]) -> None:
    page = '<meta charset="utf-8"><title>A page</title><meta property="og:image" content="https://ab--é.com/p.jpg">'
    far.rules["/"] = answer(page.encode())
    said = linking(ann, far)
    work()
    found = card(said)
    assert found is not None
    assert (found.title, found.picture) == ("A page", None)


def test_the_same_picture_is_kept_once(ann: User, far: FarServer, work: Callable[[], None], media_folder: Path) -> None:
    far.rules |= {path: answer(PAGE) for path in ("/1", "/2")} | {"/p.jpg": answer(jpeg(), kind="image/jpeg")}
    first, second = linking(ann, far, "/1"), linking(ann, far, "/2")
    work()
    assert MediaFile.objects.count() == 1
    link_cards.remove(card=LinkCard.objects.get(url=far.url("/1")))
    assert (card(first), len(files_of(media_folder))) == (None, 2)
    assert (found := card(second)) is not None
    assert found.picture is not None
    link_cards.remove(card=LinkCard.objects.get(url=far.url("/2")))
    assert (MediaFile.objects.count(), files_of(media_folder)) == (0, [])


def test_a_picture_that_no_card_came_to_show(
    ann: User, far: FarServer, work: Callable[[], None], media_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker died after the picture and before the card."""
    far.rules |= {"/": answer(PAGE), "/p.jpg": answer(jpeg(), kind="image/jpeg")}
    linking(ann, far)
    monkeypatch.setattr(link_cards, "_write_card", lambda *_args: None)
    work()
    assert files_of(media_folder)
    MediaFile.objects.update(created_at=Now() - timedelta(days=2))
    sweep_media()
    assert not files_of(media_folder)


# --- Pages that send their readers on --------------------------------------------------------------------
def sending(to: str, rest: str = "") -> Callable[[Any], None]:
    return answer(f'<meta http-equiv="refresh" content="0; url={to}">{rest}'.encode())


def test_a_page_that_sends_its_readers_on(ann: User, far: FarServer, work: Callable[[], None]) -> None:
    far.rules |= {
        "/": sending("/2", "<title>One</title>"),
        "/2": sending("/3", "<title>Two</title>"),
        "/3": answer(b"<title>Three</title>"),
    }
    said = linking(ann, far)
    work()
    assert (found := card(said)) is not None
    assert (found.url, found.title) == (far.url("/"), "Two")
    assert far.paths == ["/", "/2"], "once"


@pytest.mark.parametrize(
    "to", ["/none", "/", "http://169.254.169.254/", "http://[::1]:1/", "ftp://x.example/", "/hostile"]
)
def test_a_page_that_sends_its_readers_nowhere(ann: User, far: FarServer, work: Callable[[], None], to: str) -> None:
    far.rules |= {"/": sending(to, "<title>One</title>"), "/hostile": answer(b"<title>T</title>" + b"<svg>" * 1_000)}
    said = linking(ann, far)
    work()
    assert (found := card(said)) is not None
    assert found.title == "One"
    assert len(far.paths) <= 2


def test_a_page_that_sends_its_readers_to_a_refused_host(ann: User, far: FarServer, work: Callable[[], None]) -> None:
    far.rules |= {"/": sending(far.url("/2", host="localhost"), "<title>One</title>"), "/2": answer(PAGE)}
    RefusedHost.objects.create(host="localhost")
    said = linking(ann, far)
    work()
    assert card(said) is None


# --- Edits and removal -----------------------------------------------------------------------------------
def test_an_edit_of_the_link(ann: User, far: FarServer, work: Callable[[], None]) -> None:
    far.rules |= {"/1": answer(b"<title>One</title>"), "/2": answer(b"<title>Two</title>")}
    said = linking(ann, far, "/1")
    work()
    said = actions.edit(item=said, content={"text": f"other words {far.url('/1')}"})
    assert (found := card(said)) is not None
    assert found.title == "One"
    said = actions.edit(item=said, content={"text": far.url("/2")})
    assert card(said) is None, "never the card of another link"
    work()
    assert (found := card(said)) is not None
    assert found.title == "Two"
    said = actions.edit(item=said, content={"text": "no link"})
    work()
    assert card(said) is None


def test_items_that_come_and_go(ann: User, far: FarServer, work: Callable[[], None]) -> None:
    far.rules["/"] = answer(b"<title>One</title>")
    said = linking(ann, far, visibility=Visibility.FOLLOWERS)
    work()
    actions.change_visibility(item=said, visibility=Visibility.PUBLIC)
    work()
    assert card(said)
    for withdraw, again in (
        (actions.delete, actions.restore),
        (actions.reject, actions.approve),
    ):
        withdraw(item=said)
        assert Item.objects.get(pk=said.pk).link_card_id is None
        again(item=said)
        work()
        assert card(said)
    purge.purge(user_id=ann.pk, limit=10)
    assert not Item.objects.filter(link_card__isnull=False).exists()


def test_held_items_have_their_links_asked_when_they_are_approved(
    ann: User, far: FarServer, work: Callable[[], None], settings: Any
) -> None:
    far.rules["/"] = answer(b"<title>One</title>")
    settings.MODERATION_LINK_AGE = timedelta(days=3)
    said = linking(ann, far)
    assert said.status == Status.IN_REVIEW
    work()
    assert not far.paths
    actions.approve(item=said)
    work()
    assert card(said)


def test_open_pages_hear_of_it(ann: User, far: FarServer, work: Callable[[], None]) -> None:
    far.rules["/"] = answer(b"<title>One</title>")
    said = linking(ann, far)
    news: list[Any] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(link_cards.events, "announce", lambda *told: news.extend(told))
        work()
        assert [(one.item, one.visibility_before) for one in news] == [(said.pk, "public")]
        link_cards.remove(card=LinkCard.objects.get())
    assert len(news) == 2


# --- Staff -----------------------------------------------------------------------------------------------
def test_a_removed_card_does_not_come_back(ann: User, far: FarServer, work: Callable[[], None]) -> None:
    far.rules["/"] = answer(PAGE)
    said = linking(ann, far)
    work()
    row = LinkCard.objects.get()
    assert link_cards.remove(card=row)
    assert not link_cards.remove(card=row)
    assert card(said) is None
    LinkCard.objects.update(asked_at=None)
    asked = len(far.paths)
    again = linking(ann, far)
    work()
    assert (card(again), len(far.paths)) == (None, asked)


def test_a_refused_host(ann: User, far: FarServer, work: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    far.rules["/"] = answer(b"<title>One</title>")
    said = linking(ann, far)
    work()
    asked = len(far.paths)
    link_cards.refuse_host(host=RefusedHost(host="127.0.0.1"))
    work()
    assert card(said) is None
    again = linking(ann, far)
    work()
    assert (card(again), len(far.paths)) == (None, asked)
    RefusedHost.objects.all().delete()
    LinkCard.objects.update(asked_at=Now() - timedelta(days=2))
    again = linking(ann, far)
    work()
    assert card(again)


def test_hosts_below_a_refused_one() -> None:
    RefusedHost.objects.create(host="bad.example")
    assert [link_cards.is_refused(host) for host in ("bad.example", "www.Bad.example", "a.b.bad.example.")] == [
        True
    ] * 3
    assert not any(link_cards.is_refused(host) for host in ("notbad.example", "example", "bad.example.org"))
    for host in ("bad.example", "www.bad.example", "notbad.example", "bad.example.org"):
        url = f"https://{host}/"
        LinkCard.objects.create(url=url, digest=host, domain=link_cards.domain_of(host), facts={})
    link_cards.remove_refused(host_id=RefusedHost.objects.get().pk)
    left = LinkCard.objects.filter(facts__isnull=False).order_by("url").values_list("url", flat=True)
    assert list(left) == ["https://bad.example.org/", "https://notbad.example/"]


def test_a_redirect_to_a_refused_host(ann: User, far: FarServer, work: Callable[[], None]) -> None:
    far.rules |= {"/": moved(far.url("/2", host="localhost")), "/2": answer(PAGE)}
    RefusedHost.objects.create(host="localhost")
    said = linking(ann, far)
    work()
    assert card(said) is None


# --- Purge -----------------------------------------------------------------------------------------------
def test_cards_that_no_item_has_go(ann: User, far: FarServer, work: Callable[[], None], media_folder: Path) -> None:
    far.rules |= {f"/{number}": answer(PAGE) for number in range(3)} | {"/p.jpg": answer(jpeg(), kind="image/jpeg")}
    items = [linking(ann, far, f"/{number}") for number in range(3)]
    work()
    link_cards.remove(card=LinkCard.objects.get(url=far.url("/2")))
    for item in (items[0], items[2]):
        actions.delete(item=item)
    assert link_cards.sweep() == 0, "they are too young"
    LinkCard.objects.update(checked_at=Now() - timedelta(days=2))
    assert link_cards.sweep() == 1
    assert [row.url for row in LinkCard.objects.order_by("url")] == [far.url("/1"), far.url("/2")]
    assert len(files_of(media_folder)) == 2
    actions.delete(item=items[1])
    LinkCard.objects.update(checked_at=Now() - timedelta(days=2))
    assert link_cards.sweep() == 1
    assert not files_of(media_folder)
    assert link_cards.sweep() == 0


# --- Reading ---------------------------------------------------------------------------------------------
def test_a_page_of_cards_costs_no_more_statements(ann: User, far: FarServer, work: Callable[[], None]) -> None:
    far.rules |= {f"/{number}": answer(b"<title>One</title>") for number in range(5)}
    plain = [say(ann) for _ in range(5)]
    cards = [linking(ann, far, f"/{number}") for number in range(5)]
    work()
    with statements() as without:
        hydrate([item.pk for item in plain], ann)
    with statements() as having:
        assert all(item.link_card for item in hydrate([item.pk for item in cards], ann))
    assert len(having) == len(without)


def test_filters_look_at_cards(ann: User, bob: User, far: FarServer, work: Callable[[], None]) -> None:
    far.rules["/"] = answer(PAGE)
    said = linking(ann, far)
    work()
    filters.create(owner=bob, phrase="its words", whole_word=False)
    bob.refresh_from_db()
    (shown,) = hydrate([said.pk], bob)
    assert shown.filtered == ["its words"]


def test_the_page_of_an_item(ann: User, far: FarServer, work: Callable[[], None], client: Any) -> None:
    far.rules |= {
        "/": answer('<title>"><script>alert(1)</script>\u202eevil</title>'.encode() + PAGE[23:]),
        "/p.jpg": answer(jpeg(1200, 630), kind="image/jpeg"),
    }
    said = linking(ann, far)
    work()
    page = client.get(f"/items/{said.pk}").content.decode()
    picture = MediaFile.objects.get()
    assert f'class="link-card page wide" href="{far.url("/")}" rel="nofollow noopener ugc"' in page
    files = f'src="/media/{picture.name}.640.webp" srcset="/media/{picture.name}.jpg 2x"'
    assert f'{files} width="1200" height="630" alt="" loading="lazy"' in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; evil" in page
    assert "\u202e" not in page
    sensitive = linking(ann, far, words="x")
    Item.objects.filter(pk=sensitive.pk).update(content={"text": sensitive.text, "sensitive": True})
    work()
    page = client.get(f"/items/{sensitive.pk}").content.decode()
    assert "link-card page" in page
    assert picture.name not in page


def test_the_page_kept_for_strangers(ann: User, far: FarServer, work: Callable[[], None], client: Any) -> None:
    far.rules["/"] = answer(b"<title>Kept title</title>")
    said = linking(ann, far)
    work()
    for _time in range(3):
        assert b"Kept title" in client.get(f"/items/{said.pk}").content
    link_cards.remove(card=LinkCard.objects.get())
    assert b"Kept title" not in client.get(f"/items/{said.pk}").content
