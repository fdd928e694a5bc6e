import pytest
from django.db.models import Count

from accounts.models import User
from relations import purge, tags
from relations.models import Tag, TagFollow
from relations.tags import TagCapError, follow_tag, followed_tags_among, followed_tags_page, unfollow_tag
from tests.support.at_once import at_once
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


def fresh(user: User) -> User:
    return User.objects.get(pk=user.pk)


def names(user: User) -> list[str]:
    return [tag.name for tag in followed_tags_page(user).tags]


def count(user: User) -> int:
    return fresh(user).followed_tag_count


def test_follow_and_unfollow() -> None:
    ann, ben = UserFactory(), UserFactory()
    assert follow_tag(user=ann, tag="tea")
    assert follow_tag(user=ann, tag="茶")
    assert not follow_tag(user=ann, tag="tea")
    assert follow_tag(user=ben, tag="tea")
    assert (names(ann), names(ben)) == (["茶", "tea"], ["tea"])
    assert (count(ann), count(ben)) == (2, 1)
    assert followed_tags_among(fresh(ann), ["tea", "coffee"]) == {"tea"}
    assert unfollow_tag(user=ann, tag="tea")
    assert not unfollow_tag(user=ann, tag="tea")
    assert not unfollow_tag(user=ann, tag="never followed")
    assert (names(ann), names(ben)) == (["茶"], ["tea"])
    assert (count(ann), count(ben)) == (1, 1)


def test_a_hashtag_keeps_its_epoch_when_nobody_follows_it() -> None:
    ann = UserFactory()
    follow_tag(user=ann, tag="tea")
    before = Tag.objects.get(name="tea")
    unfollow_tag(user=ann, tag="tea")
    follow_tag(user=ann, tag="tea")
    after = Tag.objects.get(name="tea")
    assert (after.pk, after.epoch) == (before.pk, before.epoch)
    assert after.epoch > 0


def test_the_cap_holds_when_many_calls_come_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tags, "TAGS", 3)
    ann = UserFactory()
    results = at_once(*(lambda number=number: follow_tag(user=ann, tag=f"tag{number}") for number in range(8)))
    assert results.count(True) == 3
    assert [type(one) for one in results if one is not True] == [TagCapError] * 5
    assert len(names(ann)) == count(ann) == 3
    assert not follow_tag(user=ann, tag=names(ann)[0]), "the cap does not refuse what is there"
    unfollow_tag(user=ann, tag=names(ann)[0])
    assert follow_tag(user=ann, tag="other")


def test_the_same_call_many_times_at_once_counts_once() -> None:
    ann = UserFactory()
    assert sorted(at_once(*[lambda: follow_tag(user=ann, tag="tea")] * 8)) == [False] * 7 + [True]
    assert count(ann) == 1
    assert sorted(at_once(*[lambda: unfollow_tag(user=ann, tag="tea")] * 8)) == [False] * 7 + [True]
    assert count(ann) == 0


def test_many_follow_a_new_hashtag_at_once() -> None:
    people = UserFactory.create_batch(6)
    assert at_once(*(lambda user=user: follow_tag(user=user, tag="tea") for user in people)) == [True] * 6
    assert Tag.objects.annotate(followers=Count("followed_by")).values_list("name", "followers").get() == ("tea", 6)


def test_pages_both_ways() -> None:
    ann = UserFactory()
    for number in range(5):
        follow_tag(user=ann, tag=f"tag{number}")
    first = followed_tags_page(ann, limit=2)
    assert [tag.name for tag in first.tags] == ["tag4", "tag3"]
    assert first.has_more
    second = followed_tags_page(ann, last_id=first.last_id, limit=5)
    assert [tag.name for tag in second.tags] == ["tag2", "tag1", "tag0"]
    assert not second.has_more
    up = followed_tags_page(ann, min_id=second.tags[-1].id, limit=2)
    assert [tag.name for tag in up.tags] == ["tag2", "tag1"]
    newest = followed_tags_page(ann, since_id=second.tags[0].id, limit=5)
    assert [tag.name for tag in newest.tags] == ["tag4", "tag3"]


def test_a_purge_takes_them_away() -> None:
    ann, ben = UserFactory(), UserFactory()
    for user in (ann, ben):
        follow_tag(user=user, tag="tea")
        follow_tag(user=user, tag="coffee")
    while purge.purge(user_id=ann.pk, limit=1):
        pass
    assert not TagFollow.objects.filter(user=ann).exists()
    assert (count(ann), count(ben)) == (0, 2)
