from collections.abc import Callable

import pytest

from accounts.models import Level, User
from relations.followers import follower_parts
from relations.models import Follow
from storage.ids import NO_BOUND
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db

LEVELS = [Level.DORMANT] * 3 + [Level.DAILY, Level.DORMANT, Level.WEEKLY, Level.DAILY]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_every_follower_of_a_level_is_in_one_part(size: int) -> None:
    star, *followers = UserFactory.create_batch(1 + len(LEVELS))
    for follower, level in zip(followers, LEVELS, strict=True):
        follower.level = level
        follower.save(update_fields=["level"])
        Follow.objects.create(follower=follower, followee=star)
    Follow.objects.create(follower=star, followee=followers[0])
    expected = [(follower.pk, follower.level) for follower in followers]
    for minimum in (Level.DORMANT, Level.WEEKLY, Level.DAILY):
        parts = list(follower_parts(star.pk, 0, NO_BOUND, minimum, size, with_inbox=False))
        assert all(0 < len(ids) <= size for ids, _ in parts)
        assert [pair for part in parts for pair in zip(*part, strict=True)] == [
            pair for pair in expected if pair[1] >= minimum
        ]
    low, high = followers[2].pk, followers[5].pk
    within = list(follower_parts(star.pk, low, high, Level.DORMANT, size, with_inbox=False))
    assert [pair for part in within for pair in zip(*part, strict=True)] == expected[3:6]


def test_followers_without_an_inbox_are_passed(inbox_from: Callable[[int], None]) -> None:
    star, *followers = UserFactory.create_batch(4, level=Level.DAILY)
    for following, follower in enumerate(followers, 1):
        Follow.objects.create(follower=follower, followee=star)
        User.objects.filter(pk=follower.pk).update(following_count=following)

    def served(minimum: int) -> list[int]:
        parts = follower_parts(star.pk, 0, NO_BOUND, minimum, 2, with_inbox=True)
        return [follower_id for ids, _ in parts for follower_id in ids]

    ids = [follower.pk for follower in followers]
    assert served(1) == ids
    inbox_from(2)
    assert served(1) == served(3) == ids[1:]
    User.objects.filter(pk=ids[1]).update(level=Level.DORMANT)
    assert served(0) == served(3) == ids[2:]
    everybody = follower_parts(star.pk, 0, NO_BOUND, 1, with_inbox=False)
    assert list(everybody) == [([ids[0], ids[2]], [3, 3])]
