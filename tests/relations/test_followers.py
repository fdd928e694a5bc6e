"""Who follows a user, for fan-outs: everybody once, at their level, whatever the size of a part."""

import pytest

from accounts.models import Level
from relations.followers import LAST_ID, follower_parts
from relations.models import Follow
from tests.factories import UserFactory

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
        parts = list(follower_parts(star.pk, 0, LAST_ID, minimum, size))
        assert all(0 < len(part) <= size for part in parts)
        assert [pair for part in parts for pair in part] == [pair for pair in expected if pair[1] >= minimum]
    low, high = followers[2].pk, followers[5].pk
    within = [pair for part in follower_parts(star.pk, low, high, Level.DORMANT, size) for pair in part]
    assert within == expected[3:6]
