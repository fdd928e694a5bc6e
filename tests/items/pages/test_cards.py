"""Cards carry page data that must not reach the API."""

from pathlib import Path

import msgspec
import pytest
from django.contrib.auth.models import AnonymousUser
from PIL import Image

from items.actions import publish, repost
from items.hydrate import hydrate
from items.models import Visibility
from items.pages.cards import Cards
from items.pages.pictures import average_colour, ground
from items.profiles.profile import answered_senders
from media import actions as media
from media.objects import object_from_row
from tests.support.factories import UserFactory
from tests.support.pictures import encoded, upload
from tests.support.statements import statements

pytestmark = pytest.mark.django_db


def test_a_reply_names_the_sender_that_it_answers_where_the_reader_sees_both() -> None:
    asker, answerer = UserFactory.create(), UserFactory.create()
    open_one = publish(sender=asker, content={"text": "asked"})
    closed = publish(sender=asker, content={"text": "asked few"}, visibility=Visibility.SELF)
    replies = [publish(sender=answerer, content={"text": "so"}, reply_to=one) for one in (open_one, closed)]
    stranger = AnonymousUser()
    items = hydrate([reply.pk for reply in replies], stranger)
    before = msgspec.json.encode(items)
    answered = answered_senders(items, stranger)
    shown = Cards(stranger).of(items, answered=answered)
    assert [card.answered for card in shown] == [f"replying to @{asker.username}", None]
    assert msgspec.json.encode(items) == before


def test_entries_without_facts_ask_nothing() -> None:
    sender = UserFactory.create()
    item = publish(sender=sender, content={"text": "alone"})
    shared, _ = repost(sender=UserFactory.create(), item=item)
    items = hydrate([item.pk, shared.pk], sender)
    with statements() as asked:
        shown = Cards(sender).of(items, answered=answered_senders(items, sender))
    assert asked == []
    assert [(card.item, card.answered, card.is_late) for card in shown] == [(one, None, False) for one in items]


def test_the_first_picture_of_a_page_is_loaded_at_once(media_folder: Path) -> None:
    sender = UserFactory.create()
    rows = [media.upload(owner_id=sender.pk, file=upload(encoded(Image.new("RGB", (60, 40), "red")))) for _ in range(2)]
    posts = [publish(sender=sender, type="image", content={"media": [str(row.pk)]}) for row in rows]
    shown = Cards(sender).of(hydrate([post.pk for post in posts], sender))
    assert [str(card.content.figures).count('loading="eager"') for card in shown] == [1, 0]


@pytest.mark.parametrize("colour", [(200, 80, 60), (0, 0, 0), (255, 255, 255), (13, 140, 250)])
def test_the_ground_of_a_picture_has_its_average_colour(media_folder: Path, colour: tuple[int, int, int]) -> None:
    plain = encoded(Image.new("RGB", (60, 40), colour))
    row = media.upload(owner_id=1, file=upload(plain))
    found = average_colour(row.blurhash)
    assert all(abs(int(found[at : at + 2], 16) - part) <= 4 for at, part in zip((1, 3, 5), colour, strict=True)), found
    assert found in ground(object_from_row(row))


def test_without_a_blurhash_the_ground_is_black() -> None:
    assert average_colour("") == "#000000"
