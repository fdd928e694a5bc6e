import pytest

from accounts.models import User
from relations import actions as relations
from tests.support.factories import UserFactory, say
from timeline import welcome
from timeline.welcome import people_for

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(db: None) -> User:
    reader: User = UserFactory(username="reader")
    return reader


def test_those_who_use_the_hashtags_come_before_the_most_followed(reader: User) -> None:
    often, once, followed = UserFactory(), UserFactory(), UserFactory(follower_count=99)
    for number in range(3):
        say(often, f"words {number} #birds")
    say(once, "words #birds #maps")
    assert people_for(reader, ["birds"]) == [often, once, followed]
    assert people_for(reader, [])[0] == followed
    assert reader not in people_for(reader, ["birds"])


def test_no_more_than_a_page_of_them_and_none_twice(reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(welcome, "PEOPLE", 3)
    for number in range(5):
        say(UserFactory(follower_count=number), "words #birds")
    found = people_for(reader, ["birds"])
    assert len({user.pk for user in found}) == len(found) == 3


def test_those_whom_the_reader_follows_or_turned_away_are_not_proposed(reader: User) -> None:
    followed, blocked, muted, other = (UserFactory() for _ in range(4))
    for user in (followed, blocked, muted, other):
        say(user, "words #birds")
    relations.follow(follower=reader, followee=followed)
    relations.block(blocker=reader, blocked=blocked)
    relations.mute(muter=reader, muted=muted)
    assert people_for(reader, ["birds"]) == [other]
