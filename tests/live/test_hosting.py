from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from live import actions, hosting
from relations import actions as relations
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db


def host(followers: int = 0) -> User:
    one: User = UserFactory(follower_count=followers)
    now = timezone.now()
    actions.create(host=one, title="words", starts_at=now + timedelta(hours=1), now=now)
    return one


def proposed(reader: User) -> list[User]:
    return hosting.hosts_to_follow(reader)


def test_the_most_followed_come_first() -> None:
    few, many, none = host(2), host(30), host()
    assert proposed(UserFactory()) == [many, few, none]


def test_those_whom_the_reader_follows_or_turned_away_are_not_proposed() -> None:
    reader = host()
    followed, blocked, blocking, muted, left, other = (host() for _ in range(6))
    relations.follow(follower=reader, followee=followed)
    relations.block(blocker=reader, blocked=blocked)
    relations.block(blocker=blocking, blocked=reader)
    relations.mute(muter=reader, muted=muted)
    User.objects.filter(pk=left.pk).update(is_active=False)
    UserFactory()  # no session planned
    assert proposed(reader) == [other]


def test_the_most_followed_users_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosting, "PROPOSED_OF", 3)
    many, some = host(30), host(20)
    UserFactory(follower_count=25)  # no session planned
    host(1)
    reader = UserFactory()
    assert proposed(reader) == [many, some]
    relations.block(blocker=many, blocked=reader)
    assert proposed(reader) == [some], "those turned away are looked at, too"
