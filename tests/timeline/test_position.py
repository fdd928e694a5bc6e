import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client

from accounts.models import User
from items import actions as items
from items.models import Item
from relations import actions as relations
from tests.support.at_once import at_once
from tests.support.factories import ItemFactory, UserFactory
from tests.support.pages import PART
from tests.support.statements import statements
from timeline.models import ReadingPosition
from timeline.oracle import home_ids
from timeline.position import ResumeOffer, forget_position, reading_state, resume_offer, save_position

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(author: User, client: Client) -> User:
    reader = UserFactory(username="reader")
    relations.follow(follower=reader, followee=author)
    client.force_login(reader)
    return reader


def pass_time(**duration: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE timeline_readingposition SET updated_at = updated_at - %s", [timedelta(**duration)])


def kept(reader: User) -> tuple[int, int | None]:
    place = ReadingPosition.objects.get(reader=reader)
    return place.item_id, place.left_id


def test_a_position_is_one_statement_that_refuses_what_comes_too_soon(reader: User) -> None:
    with statements() as seen:
        assert save_position(reader=reader, item_id=50)
    assert len(seen) == 1
    assert not save_position(reader=reader, item_id=40)
    pass_time(seconds=9.5)
    assert not save_position(reader=reader, item_id=40)
    pass_time(seconds=1)
    assert save_position(reader=reader, item_id=40)
    assert kept(reader) == (40, None)


@pytest.mark.django_db(transaction=True)
def test_of_several_devices_one_writes(reader: User) -> None:
    for already in (0, 1):
        calls = [lambda place=place: save_position(reader=reader, item_id=place) for place in range(100, 108)]
        results = at_once(*calls)  # type: ignore[arg-type]
        assert sorted(results) == [False] * 7 + [True]
        assert kept(reader)[0] == 100 + results.index(True)
        if not already:
            pass_time(seconds=11)


def test_opening_the_home_keeps_the_place_that_was_left(reader: User) -> None:
    save_position(reader=reader, item_id=50)
    pass_time(minutes=11)
    assert reading_state(reader).left_id == 50, "before anything is written"
    assert save_position(reader=reader, item_id=90)
    assert kept(reader) == (90, 50)
    pass_time(seconds=11)
    assert save_position(reader=reader, item_id=70)
    assert kept(reader) == (70, 50), "reading on the way down"
    pass_time(seconds=11)
    save_position(reader=reader, item_id=50)
    assert kept(reader) == (50, None), "arrived"


def test_the_last_visit_counts(reader: User) -> None:
    for place in (50, 90, 140):
        save_position(reader=reader, item_id=place)
        pass_time(minutes=11)
    assert reading_state(reader).left_id == 140
    save_position(reader=reader, item_id=180)
    assert kept(reader) == (180, 140)
    pass_time(minutes=11)
    save_position(reader=reader, item_id=100)
    assert kept(reader) == (100, None), "they came back to older posts by themselves"


def test_readers_who_do_not_want_it_are_not_asked_again(reader: User) -> None:
    save_position(reader=reader, item_id=50)
    pass_time(minutes=11)
    forget_position(reader=reader)
    assert reading_state(reader).left_id is None
    save_position(reader=reader, item_id=90)
    assert reading_state(reader).left_id is None
    forget_position(reader=UserFactory())


def test_what_lies_between_is_what_the_home_shows(reader: User, author: User) -> None:
    made = [ItemFactory(sender=author) for _ in range(45)]
    save_position(reader=reader, item_id=made[10].pk)
    pass_time(minutes=11)
    items.delete(item=made[20])
    items.delete(item=made[10])  # the position's item may be gone
    ItemFactory(sender=UserFactory())
    expected = len(home_ids(reader.pk, above=made[10].pk))
    assert resume_offer(reader, reading_state(reader)) == ResumeOffer(made[10].pk + 1, expected, False)
    assert expected == 33


def test_nothing_is_offered_for_less_than_a_page(reader: User, author: User) -> None:
    assert resume_offer(reader, reading_state(reader)) is None
    made = [ItemFactory(sender=author) for _ in range(21)]
    save_position(reader=reader, item_id=made[1].pk)
    pass_time(minutes=11)
    assert resume_offer(reader, reading_state(reader)) is None
    ItemFactory(sender=author)
    assert resume_offer(reader, reading_state(reader)) == ResumeOffer(made[1].pk + 1, 20, False)


@pytest.mark.slow
def test_the_home_offers_to_go_on(client: Client, reader: User, author: User) -> None:
    made = [ItemFactory(sender=author) for _ in range(130)]
    client.get(f"/?last_id={made[21].pk}")
    assert kept(reader) == (made[20].pk, None)
    assert 'id="offer"' not in client.get("/").content.decode(), "there was no pause"
    for between, text in ((109, "more than 100 posts in between"), (37, "37 posts in between")):
        ReadingPosition.objects.update(item_id=made[129 - between].pk, left_id=None)
        pass_time(minutes=11)
        page = client.get("/").content.decode()
        assert text in page
        assert f'/?last_id={made[129 - between].pk + 1}"' in page
    # It stays for the visit, also on the page that htmx requests, ...
    assert "37 posts in between" in client.get("/").content.decode()
    assert "37 posts in between" in client.get("/", **PART).content.decode()
    assert kept(reader) == (made[129].pk, made[92].pk)
    # ... and leads to the reader's position.
    address = re.search(r'href="(/\?last_id=\d+)"><b>Continue', page)
    assert address
    assert client.get(address[1]).context["page"].items[0].id == str(made[92].pk)
    pass_time(seconds=11)
    client.get(address[1])
    assert 'id="offer"' not in client.get("/").content.decode(), "they went there"


@pytest.mark.slow
def test_dismissing(client: Client, reader: User, author: User) -> None:
    made = [ItemFactory(sender=author) for _ in range(30)]
    for headers, status in (({}, 302), (PART, 200)):
        save_position(reader=reader, item_id=made[0].pk)
        pass_time(minutes=11)
        assert "29 posts in between" in client.get("/").content.decode()
        assert client.post("/position", {"forget": "1"}, **headers).status_code == status
        assert 'id="offer"' not in client.get("/").content.decode()
        pass_time(minutes=11)
        ReadingPosition.objects.update(item_id=made[0].pk, left_id=None)


@pytest.mark.slow
def test_only_a_page_that_somebody_opens_writes(client: Client, reader: User, author: User) -> None:
    client.get("/")
    item: Item = ItemFactory(sender=author)
    client.head("/")
    client.get("/", **PART)
    client.get("/new")
    assert not ReadingPosition.objects.exists()
    client.get("/")
    assert kept(reader) == (item.pk, None)


def test_bad_positions(client: Client, reader: User) -> None:
    assert client.post("/position", {"item_id": "7"}).status_code == 204
    assert kept(reader) == (7, None)
    for value in ("", "0", "-1", "abc", "1.5", "9" * 30, "\x00"):
        assert client.post("/position", {"item_id": value}).status_code == 400
    assert client.post("/position").status_code == 400
    assert client.get("/position").status_code == 405
    assert Client(enforce_csrf_checks=True).post("/position", {"item_id": "7"}).status_code == 403
    assert Client().post("/position", {"item_id": "7"}).status_code == 302
