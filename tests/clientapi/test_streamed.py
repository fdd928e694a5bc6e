"""A streamed status must equal the answer of its own address for the same reader."""

import itertools
import json
import random
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import QuotableBy, User
from clientapi.accounts.people import known_senders, post_counts
from clientapi.streaming.streaming import messages_for
from clientapi.streaming.streams import ClientHearer, stream_of
from items import actions as items
from items.filters import filters
from items.models import LISTED, Bookmark, Item, Like, Visibility
from items.quotes import audience_fits, may_quote
from relations import actions as relations
from relations import lists
from storage.events import Edited, Entry, Position
from tests.support.clients import Caller
from tests.support.effort import tries
from tests.support.factories import UserFactory
from tests.support.picture_posts import posted, sent
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

ALL = frozenset({"read"})
WORDS = ("zebra", "cat", "Tiger", "中文", "rain")


def related(chance: random.Random) -> list[User]:
    """Random follows, blocks, mutes and filters."""
    people = [UserFactory(username=f"q{number}") for number in range(5)]
    for one, other in itertools.permutations(people, 2):
        if chance.random() < 0.7:
            relations.follow(follower=one, followee=other)
        if chance.random() < 0.12:
            relations.block(blocker=one, blocked=other)
        if chance.random() < 0.1:
            relations.mute(muter=one, muted=other)
    for one, word in itertools.product(people, chance.sample(WORDS, 3)):
        ends = timezone.now() + timedelta(hours=chance.choice([-1, 1])) if chance.random() < 0.3 else None
        for whole in chance.sample([False, True], chance.randrange(3)):
            filters.create(
                owner=one, phrase=word, whole_word=whole, action=chance.choice(["warn", "hide"]), expires_at=ends
            )
    return people


def sees(reader: User, item: Item) -> bool:
    return Item.objects.visible_to(reader).filter(pk=item.pk).exists()


def spoken(chance: random.Random, people: list[User]) -> list[Item]:
    """With mentions, some liked and bookmarked."""
    said: list[Item] = []
    for number in range(12):
        sender = chance.choice(people)
        seen = [item for item in said if sees(sender, item)]
        visibility = chance.choice(LISTED)
        quotable = [item for item in seen if may_quote(item, sender) and audience_fits(item, sender, visibility)]
        named = " ".join(f"@{one.username}" for one in chance.sample(people, 2))
        said.append(
            items.publish(
                sender=sender,
                content={
                    "text": f"{number} #tag {named} {' '.join(chance.sample(WORDS, 2))}s",
                    "warning": chance.choice(["", "rain ahead"]),
                },
                visibility=visibility,
                reply_to=chance.choice(seen) if seen and chance.random() < 0.4 else None,
                quote_of=chance.choice(quotable) if quotable and chance.random() < 0.5 else None,
                quotable_by=chance.choice(QuotableBy.values),
            )
        )
    for one, item in itertools.product(people, chance.sample(said, 5)):
        chance.choice([Like, Bookmark]).objects.get_or_create(user=one, item=item)
    for item in chance.sample(said, 5):
        sharer = chance.choice(people)
        if item.visibility == Visibility.PUBLIC and not item.reply_to_id and sees(sharer, item):
            said.append(items.repost(sender=sharer, item=item)[0])
    for quote in [item for item in said if item.quote_of_id]:
        if chance.random() < 0.1:
            items.revoke_quote(quote=quote)
    return said


def hearers_of(people: list[User]) -> list[ClientHearer]:
    """Each hears their home, a list of all followees, public posts and a hashtag."""
    found = []
    for one in people:
        made = lists.create(owner=one, title="all")
        for other in people:
            if one.follows.filter(followee=other).exists():
                lists.add(owner=one, list_id=made.pk, member=other)
        streams = [
            stream_of("user", ALL, one),
            stream_of("list", ALL, one, list_id=str(made.pk)),
            stream_of("public", ALL, one),
            stream_of("hashtag", ALL, one, tag="tag"),
        ]
        found.append(ClientHearer(one.pk, tuple(streams), True))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(tries(1, 100)))
def test_a_streamed_status_is_the_one_of_its_address(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 (a made-up world)
    people = related(chance)
    said = spoken(chance, people)
    callers = {one.pk: Caller(one) for one in people}
    hearers = hearers_of(people)
    post_counts.forget()
    known_senders.forget()
    entries: list[Entry] = [(Position(1, number), Edited(item.pk, item.visibility)) for number, item in enumerate(said)]
    compared = quotes = 0
    for hearer, _, data in messages_for(hearers, entries):
        message = json.loads(data)
        if message["event"] != "status.update":
            continue
        status = json.loads(message["payload"])
        answer = callers[hearer.reader].get(f"v1/statuses/{status['id']}")
        both = [one for one in (answer, answer["reblog"]) if one]
        inside = [one["quote"]["quoted_status"] for one in both if one["quote"] and one["quote"]["quoted_status"]]
        for one in [*both, *inside]:
            one.pop("pinned", None)  # only its sender gets it on request
        quotes += len(inside)
        assert status == answer, (message["stream"], hearer.reader)
        compared += 1
    assert compared >= 10, "otherwise this tries little"
    assert quotes or seed, "the first world has a quote that somebody sees"


def shown_to(reader: User, item: Item, *streams: str) -> list[dict[str, Any]]:
    hearer = ClientHearer(reader.pk, tuple(stream_of(name, ALL, reader) for name in streams), True)
    messages = messages_for([hearer], [(Position(1, 1), Edited(item.pk, "public"))])
    return [json.loads(json.loads(data)["payload"]) for _, _, data in messages]


def test_an_account_that_blocks_the_reader_is_not_named() -> None:
    reader, sender, blocking, other = (UserFactory(username=name) for name in ("me", "you", "them", "others"))
    relations.block(blocker=blocking, blocked=reader)
    item = items.publish(sender=sender, content={"text": "@them and @others"})
    (status,) = shown_to(reader, item, "public")
    assert [one["acct"] for one in status["mentions"]] == ["others"]
    assert "/@them" not in status["content"]
    (status,) = shown_to(other, item, "public")
    assert [one["acct"] for one in status["mentions"]] == ["them", "others"]


def test_streams_of_pictures_tell_of_pictures_alone() -> None:
    reader = UserFactory()
    sender = UserFactory()
    with_picture, without = posted(sender, sent(sender)), items.publish(sender=UserFactory(), content={"text": "words"})
    assert len(shown_to(reader, with_picture, "public:media", "public")) == 2
    assert len(shown_to(reader, without, "public:media", "public")) == 1


@pytest.mark.slow
def test_many_with_filters_cost_no_more_statements() -> None:
    sender = UserFactory()
    readers = UserFactory.create_batch(12)
    for number, reader in enumerate(readers):
        filters.create(owner=reader, phrase="words", whole_word=False)
        filters.create(owner=reader, phrase=f"more {number}", whole_word=True)
    item = items.publish(sender=sender, content={"text": "words and more 3 of them"})
    shown_to(UserFactory(), item, "public")  # loads the sender's account
    counts, met = [], []
    for some in (readers[:2], readers, readers):
        hearers = [ClientHearer(one.pk, (stream_of("public", ALL, one),), True) for one in some]
        with statements() as asked:
            told = messages_for(hearers, [(Position(1, 1), Edited(item.pk, "public"))])
        counts.append(len(asked))
        met.append([len(json.loads(json.loads(data)["payload"])["filtered"]) for _, _, data in told])
    assert counts[0] == counts[1] == counts[2] + 1, "what is known is not read again"
    assert sorted(met[2]) == [1] * 11 + [2]
    filters.create(owner=readers[0], phrase="them", whole_word=True)
    hearers = [ClientHearer(readers[0].pk, (stream_of("public", ALL, readers[0]),), True)]
    ((_, _, data),) = messages_for(hearers, [(Position(1, 1), Edited(item.pk, "public"))])
    assert len(json.loads(json.loads(data)["payload"])["filtered"]) == 2
