import hypothesis.strategies as st
import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings

from accounts.models import User
from items.models import Item, Status
from relations import actions as relations
from tests.support.effort import tries
from tests.support.factories import ItemFactory
from tests.support.timelines import seen
from timeline import fold, oracle
from timeline.home import home_page, new_count
from timeline.oracle import entry_ids, home_ids, new_ids

FRIENDS = 6
ORIGINALS = 3
RECENT = 4
"""How many of the newest posts may be reposted."""

said = st.tuples(
    st.integers(-1, FRIENDS - 1),  # -1: the reader
    st.sampled_from([None, None, *range(ORIGINALS + RECENT)]),  # a post, or a repost of one of these
    st.booleans() | st.just(True),  # whether it still exists
)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.django_db
@settings(max_examples=tries(12, 60), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(said, min_size=4, max_size=24),
    st.integers(1, 4),
    st.integers(1, 9),
    st.sets(st.integers(0, ORIGINALS - 1), max_size=1),
)
def test_every_page_folds_as_the_oracle_says(
    events: list[tuple[int, int | None, bool]], reach: int, limit: int, hidden: set[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch, transaction.atomic():
        patch.setattr(fold, "REACH", reach)
        patch.setattr(oracle, "REACH", reach)
        reader = tell(events, hidden)
        _walk(reader, limit)
        _count(reader)
        transaction.set_rollback(True)


def tell(events: list[tuple[int, int | None, bool]], hidden: set[int]) -> User:
    """Returns a reader who follows everybody."""
    reader, author = seen(), seen()
    friends = [seen() for _ in range(FRIENDS)]
    for friend in friends:
        relations.follow(follower=reader, followee=friend)
    originals = [ItemFactory(sender=author, visibility="self" if n in hidden else "public") for n in range(ORIGINALS)]
    reposted: set[tuple[int, int]] = set()
    posts: list[Item] = []
    for number, original, is_there in events:
        sender = reader if number < 0 else friends[number]
        repost_of = None
        if original is not None:
            recent = originals + posts[: -RECENT - 1 : -1]
            repost_of = recent[original] if original < len(recent) else None
        if repost_of and (sender.pk, repost_of.pk) in reposted:
            continue
        status = Status.PUBLISHED if is_there else Status.DELETED
        item = ItemFactory(sender=sender, repost_of=repost_of, status=status)
        if repost_of and is_there:
            reposted.add((sender.pk, repost_of.pk))
        elif not repost_of:
            posts.append(item)
    return reader


def _walk(reader: User, limit: int) -> None:
    expected, entries = home_ids(reader.pk), entry_ids(reader.pk)
    roots = dict(Item.objects.filter(pk__in=entries).values_list("pk", "repost_of"))
    for position in [None, *entries, 1]:
        page = home_page(reader, last_id=position, limit=limit)
        below = [item_id for item_id in expected if position is None or item_id < position]
        assert [int(item.id) for item in page.items] == below[:limit]
        assert page.has_more == (len(below) > limit)
        for item in page.items:
            if item.repost_of:
                place = entries.index(int(item.id))
                near = entries[place + 1 : place + 1 + oracle.REACH]
                assert page.others.get(item.id, 0) == sum(roots[entry] == int(item.repost_of.id) for entry in near)


def _count(reader: User) -> None:
    for since in [1, *entry_ids(reader.pk)]:
        for of_others in (False, True):
            expected = len(new_ids(reader.pk, since=since, of_others=of_others))
            assert new_count(reader, since_id=since, of_others=of_others) == (expected, False)
