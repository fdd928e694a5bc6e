import pytest

from accounts.models import User
from relations import actions as relations
from tests.support.factories import UserFactory
from tests.support.sites import star, streams, web, worker  # noqa: F401


@pytest.fixture
def fan(author: User) -> User:
    fan = UserFactory()
    relations.follow(follower=fan, followee=author)
    return fan
