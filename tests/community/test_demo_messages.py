"""Messages of the demo are what publishing them would have left."""

import pytest

from accounts.models import User
from community import demo
from community.demo_messages import TALKS
from items.conversations.conversations import conversations_page
from items.conversations.messages import messages_page
from items.models import Item, ItemType
from notifications.feed import unread_count

pytestmark = pytest.mark.django_db


@pytest.mark.slow
def test_the_first_reader_has_conversations_and_a_request(media_folder: object) -> None:
    demo.make()
    mira = User.objects.get(username="mira")
    inbox = conversations_page(mira).items
    assert [one.unread for one in inbox] == [True, False, False]
    assert [len(one.users) for one in inbox] == [1, 2, 1]
    (request,) = conversations_page(mira, requests=True).items
    assert request.unread
    assert unread_count(mira).conversations == unread_count(mira).requests == 1
    written = [[message.text for message in talk.messages] for talk in TALKS]
    for one in (*inbox, request):
        messages = messages_page(mira, int(one.id)).items[::-1]
        assert [message.words for message in messages] in written
        moments = [message.created_at for message in messages]
        assert moments == sorted(set(moments)), "each at its own time"
    for name in ("tomas", "lin-wei"):
        assert conversations_page(User.objects.get(username=name)).items, name


def test_the_smallest_demo_has_those_whose_people_are_there() -> None:
    demo.make(size=demo.SMALLEST)
    private = Item.objects.filter(visibility="mentioned")
    assert private.exists()
    assert not private.filter(type=ItemType.IMAGE).exists()
