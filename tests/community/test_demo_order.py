import pytest

from accounts.models import User
from community import demo, demo_order
from items.filters import filters
from items.likes.saved import saved_page
from items.models import Item
from items.profiles import pins
from relations import lists
from timeline.lists import list_page

pytestmark = pytest.mark.django_db


@pytest.mark.long
def test_readers_have_order_in_what_they_read() -> None:
    demo.make()
    for name in demo.READERS:
        reader = User.objects.get(username=name)
        (own,) = lists.lists_of(reader)
        assert own.members == demo_order.MEMBERS
        assert list_page(reader, own.id).items
        assert len(pins.pinned_items(reader, reader)) == 1
        assert len(saved_page(reader, "bookmark").items) == demo_order.KEPT
        (phrase,) = filters.filters_of(reader)
        assert Item.objects.filter(content__text__icontains=phrase.phrase).exists()


@pytest.mark.slow
def test_a_small_community_has_what_there_is() -> None:
    demo.make(size=demo.SMALLEST)
    assert lists.lists_of(User.objects.get(username="mira"))[0].members > 0
