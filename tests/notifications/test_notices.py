import pytest

from accounts.actions import edit_profile
from accounts.models import User
from items import actions as items
from notifications.feed import notifications_page
from notifications.notices import Notice, notices
from relations import actions as relations
from tests.support.factories import UserFactory, say
from tests.support.statements import statements

pytestmark = pytest.mark.django_db


def rows(reader: User) -> list[Notice]:
    return notices(notifications_page(reader).items, reader)


def test_a_reply_quotes_what_it_answers(ann: User, bob: User) -> None:
    post = say(ann, "asked")
    reply = say(bob, "answered", reply_to=post)
    say(bob, "@ann, look")
    items.like(user=bob, item=post)
    like, mention, answer = rows(ann)
    assert (answer.quoted and answer.quoted.id, answer.card is not None) == (str(post.pk), True)
    assert (mention.quoted, mention.card is not None) == (None, True)
    assert (like.quoted, like.card is not None) == (None, False)
    items.delete(item=post)
    assert [row.quoted for row in rows(ann) if row.entry.item and row.entry.item.id == str(reply.pk)] in ([], [None])


def test_followers_are_offered_until_they_are_followed(ann: User, bob: User) -> None:
    other = UserFactory.create()
    for fan in (bob, other):
        relations.follow(follower=fan, followee=ann)
    (row,) = rows(ann)
    assert {user.pk for user in row.back} == {bob.pk, other.pk}
    relations.follow(follower=ann, followee=bob)
    (row,) = rows(ann)
    assert [user.pk for user in row.back] == [other.pk]
    edit_profile(user=other, is_locked=True)
    (row,) = rows(ann)
    assert row.back[0].is_locked, "the button says at once that it asks"
    relations.follow(follower=ann, followee=User.objects.get(pk=other.pk))
    (row,) = rows(ann)
    assert row.back == [], "a request waits"


def test_entries_without_answers_or_followers_ask_nothing(ann: User, bob: User) -> None:
    items.like(user=bob, item=say(ann))
    entries = notifications_page(ann).items
    with statements() as asked:
        assert len(notices(entries, ann)) == 1
    assert asked == []
