"""`say` publishes, commits and fans out as the site does. Factories only write rows."""

from typing import Any

import factory
import msgspec
from django.contrib.auth.hashers import make_password
from django.utils import timezone

from accounts.models import Level, User
from items import actions as items
from items.bodies import LinkFacts
from items.models import Item, LinkCard
from media.objects import MediumFacts

PASSWORD = "correct horse battery staple"


class UserFactory(factory.django.DjangoModelFactory[User]):
    """Recently seen, signs in with `PASSWORD`."""

    class Meta:
        model = User

    username = factory.Sequence(lambda number: f"user{number}")
    password = factory.LazyFunction(lambda: make_password(PASSWORD))
    level = Level.DAILY
    last_seen_at = factory.LazyFunction(timezone.now)


class ItemFactory(factory.django.DjangoModelFactory[Item]):
    """Undelivered, for reads past the windows."""

    class Meta:
        model = Item

    sender: Any = factory.SubFactory(UserFactory)
    content = factory.Sequence(lambda number: {"text": f"words {number}"})
    reply_to: Any = None
    root = factory.LazyAttribute(lambda item: item.reply_to and (item.reply_to.root or item.reply_to))


def say(sender: Any, text: str = "words", **fields: Any) -> Item:
    """`fields` go to `items.actions.publish`."""
    return items.publish(sender=sender, content={"text": text}, **fields)


def with_card(item: Item) -> Item:
    """Add a link card as a worker does."""
    picture = MediumFacts(
        id="1", kind="image", name="aa/bb", ext="jpg", small_ext="jpg", width=640, height=336, blurhash="LEHV"
    )
    facts = LinkFacts("https://far.example/page", "A page", "Its words", "Far", picture)
    card = LinkCard.objects.create(
        url=facts.url, digest=str(item.pk), domain="example.far.", facts=msgspec.to_builtins(facts)
    )
    Item.objects.filter(pk=item.pk).update(link_card=card)
    return item
