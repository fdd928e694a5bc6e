from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from accounts.models import User
from accounts.signals import account_purged
from feedsite import celery
from items import actions as items
from items.models import Item, Status
from notifications import actions, bells, feed, forgetting
from notifications.feed import notifications_page, unread_count
from notifications.models import CHOOSABLE, Act, Kind, Notification, ReadMark, Silenced
from relations import actions as relations
from storage import events, ids, keys
from storage.events import Notified
from tests.support.at_once import at_once
from tests.support.factories import UserFactory, say
from tests.support.index_reads import entries_read, old_snapshot
from tests.support.statements import statements

pytestmark = pytest.mark.django_db
NOTHING = {"unread": 0, "capped": False, "conversations": 0, "requests": 0}


@pytest.fixture
def bob() -> User:
    return UserFactory(username="Bob")


@pytest.fixture
def cid() -> User:
    return UserFactory(username="cid")


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> int:
    """An hour in units of ids. Entries stay in place longer than a slow machine takes."""
    hour = 3_600 * feed.STILL
    monkeypatch.setattr(feed, "STILL", hour)
    return hour


def told(user: User) -> list[tuple[str, list[str]]]:
    """Kinds and names of actors, newest first."""
    return [(entry.kind, [card.username for card in entry.actors]) for entry in notifications_page(user).items]


# --- Recipients ------------------------------------------------------------------------------------------
def test_users_are_told_what_others_do(ann: User, bob: User, cid: User) -> None:
    post = say(ann)
    items.like(user=bob, item=post)
    items.like(user=cid, item=post)
    items.repost(sender=bob, item=post)
    say(bob, "an answer", reply_to=post)
    say(cid, "hello @ANN")
    relations.follow(follower=bob, followee=ann)
    relations.follow(follower=cid, followee=ann)
    assert told(ann) == [
        ("follow", ["cid", "Bob"]),
        ("mention", ["cid"]),
        ("reply", ["Bob"]),
        ("repost", ["Bob"]),
        ("like", ["cid", "Bob"]),
    ]
    assert told(bob) == told(cid) == []


def test_users_are_not_told_of_themselves(ann: User) -> None:
    post = say(ann, "I, @ann")
    items.like(user=ann, item=post)
    items.repost(sender=ann, item=post)
    say(ann, "more, @ann", reply_to=post)
    assert not Notification.objects.exists()


def test_a_like_of_a_repost_is_one_of_the_original(ann: User, bob: User, cid: User) -> None:
    post = say(ann)
    repost, _ = items.repost(sender=bob, item=post)
    items.like(user=cid, item=repost)
    say(cid, "an answer", reply_to=repost)
    assert told(ann) == [("reply", ["cid"]), ("like", ["cid"]), ("repost", ["Bob"])]
    assert told(bob) == []


def test_a_reply_is_told_to_whom_it_answers_and_to_whose_thread_it_is(ann: User, bob: User, cid: User) -> None:
    root = say(ann)
    reply = say(bob, "an answer", reply_to=root)
    say(cid, "@ann and @bob, no", reply_to=reply)
    assert told(ann) == [("reply", ["cid"]), ("reply", ["Bob"])]
    assert told(bob) == [("reply", ["cid"])]


def test_so_many_mentions_are_told_and_no_more(ann: User) -> None:
    people = [UserFactory(username=f"person{number}") for number in range(25)]
    say(ann, " ".join(f"@{one.username}" for one in people))
    assert [bool(told(one)) for one in people] == [True] * actions.MENTIONS + [False] * 5


@pytest.mark.parametrize("visibility", ["self", "followers", "mutuals"])
def test_users_who_may_not_see_it_are_not_told(ann: User, bob: User, cid: User, visibility: str) -> None:
    relations.follow(follower=bob, followee=ann)
    relations.follow(follower=ann, followee=bob)
    item = say(ann, "@bob and @cid", visibility=visibility)
    mention = ("mention", ["ann"])
    assert (mention in told(bob)) == (visibility != "self")
    assert told(cid) == []
    items.change_visibility(item=item, visibility="public")
    assert mention in told(bob)
    assert told(cid) == [mention]


def test_an_edit_tells_whom_it_mentions_newly(ann: User, bob: User, cid: User) -> None:
    item = say(ann, "@bob")
    items.edit(item=item, content={"text": "@bob and @cid"})
    items.edit(item=item, content={"text": "@cid and @bob"})
    assert told(bob) == told(cid) == [("mention", ["ann"])]
    assert Act.objects.count() == 2


def test_what_waits_for_a_moderator_is_told_when_it_is_approved(ann: User, bob: User) -> None:
    post = say(ann)
    reply = say(bob, "hm", reply_to=post)
    items.hold(item=reply, reasons=["a word"])
    assert told(ann) == []
    items.approve(item=reply)
    assert told(ann) == [("reply", ["Bob"])]

    held = Item.objects.create(sender=bob, content={"text": "@ann"}, status=Status.IN_REVIEW)
    actions.notify_of_item(item=held)
    assert len(told(ann)) == 1
    items.approve(item=held)
    assert told(ann) == [("mention", ["Bob"]), ("reply", ["Bob"])]


# --- Undoing and redoing ---------------------------------------------------------------------------------
@pytest.mark.slow
def test_undone_acts_are_gone_and_redone_acts_are_told_once(ann: User, bob: User) -> None:
    post = say(ann)
    reply = say(bob, "hm", reply_to=post)
    deeds: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
        ("reply", lambda: items.restore(item=reply), lambda: items.delete(item=reply)),
        ("like", lambda: items.like(user=bob, item=post), lambda: items.unlike(user=bob, item=post)),
        ("repost", lambda: items.repost(sender=bob, item=post), lambda: items.undo_repost(sender=bob, item=post)),
        (
            "follow",
            lambda: relations.follow(follower=bob, followee=ann),
            lambda: relations.unfollow(follower=bob, followee=ann),
        ),
    ]
    items.delete(item=reply)
    for kind, do, undo in deeds:
        do()
        assert told(ann) == [(kind, ["Bob"])]
        assert unread_count(ann).unread == 1
        actions.mark_read(user=ann)
        undo()
        assert told(ann) == []
        do()
        assert told(ann) == [(kind, ["Bob"])]
        assert unread_count(ann).unread == 0  # seen before
        undo()
    items.delete(item=post)
    assert told(ann) == []


def test_a_day_has_an_entry_of_its_own_for_followers(ann: User, bob: User, cid: User) -> None:
    relations.follow(follower=bob, followee=ann)
    # A day before the database's today, since midnight may pass.
    Notification.objects.update(day=F("day") - timedelta(days=1))
    ann.followed_by.update(created_at=F("created_at") - timedelta(days=1))
    relations.follow(follower=cid, followee=ann)
    assert told(ann) == [("follow", ["cid"]), ("follow", ["Bob"])]
    relations.unfollow(follower=bob, followee=ann)
    relations.follow(follower=bob, followee=ann)
    assert told(ann) == [("follow", ["Bob", "cid"])]


# --- Cost ------------------------------------------------------------------------------------------------
def test_most_posts_cost_nothing_and_the_others_one_statement(ann: User, bob: User) -> None:
    for text, fields, most in [
        ("words", {}, 0),
        ("@bob " * 30, {}, 1),
        ("@bob", {"reply_to": say(bob)}, 1),
        ("words", {"reply_to": say(bob)}, 1),
    ]:
        with statements() as seen:
            say(ann, text, **fields)
        assert sum("notifications_" in one for one in seen) == most


def test_a_like_costs_one_statement_after_the_first(ann: User) -> None:
    post = say(ann)
    for most in (3, 1, 1):
        with statements() as seen:
            items.like(user=UserFactory(), item=post)
        assert sum("notifications_" in one for one in seen) == most


def test_an_entry_moves_once_in_a_while(ann: User, bob: User, cid: User, still: int) -> None:
    post = say(ann)
    items.like(user=bob, item=post)
    entry = Notification.objects.get()
    items.like(user=cid, item=post)
    assert Notification.objects.get().position == entry.position
    Notification.objects.update(position=entry.position - still)
    items.like(user=UserFactory(), item=post)
    assert Notification.objects.get().position == Act.objects.latest("id").pk


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_many_like_at_once() -> None:
    ann = UserFactory()
    post = say(ann)
    people = UserFactory.create_batch(12)
    answers = at_once(*[lambda one=one: items.like(user=one, item=post) for one in people])
    assert answers == [True] * 12
    assert Act.objects.filter(notification=Notification.objects.get()).count() == 12
    (entry,) = notifications_page(ann).items
    assert entry.count == 12


@pytest.mark.django_db(transaction=True)
def test_a_like_does_not_wait_for_another(ann: User, bob: User, cid: User) -> None:
    """An open transaction must not block others on the same entry."""
    post = say(ann)
    items.like(user=bob, item=post)

    def like() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '2s'")
        return items.like(user=UserFactory(), item=post)

    with transaction.atomic():
        items.like(user=cid, item=post)
        assert at_once(like) == [True]


# --- Reading and live news -------------------------------------------------------------------------------
def test_a_mark_never_goes_back_and_never_ahead(ann: User, bob: User) -> None:
    items.like(user=bob, item=say(ann))
    actions.mark_read(user=ann, up_to=ids.MAX_ID)
    mark = ReadMark.objects.get().up_to
    assert mark < ids.MAX_ID
    actions.mark_read(user=ann, up_to=5)
    assert ReadMark.objects.get().up_to == mark
    items.like(user=bob, item=say(ann))
    assert unread_count(ann).unread == 1


def test_open_pages_are_told_when_it_is_committed(
    ann: User, bob: User, feeds: Any, still: int, django_capture_on_commit_callbacks: Any
) -> None:
    def news(deed: Callable[[], Any]) -> list[events.Event | None]:
        feeds.delete("events")
        with django_capture_on_commit_callbacks(execute=True):
            deed()
        written = [events.event_of(fields) for _, fields in feeds.xrange("events")]
        return [one for one in written if isinstance(one, Notified)]

    post = say(ann)
    assert news(lambda: items.like(user=bob, item=post)) == [Notified(ann.pk, NOTHING | {"unread": 1})]
    assert news(lambda: items.like(user=UserFactory(), item=post)) == []  # it stays in place
    assert news(lambda: say(bob, "@ann")) == [Notified(ann.pk, NOTHING | {"unread": 2})]
    assert news(lambda: actions.mark_read(user=ann)) == [Notified(ann.pk, NOTHING | {"unread": 0})]
    assert news(lambda: actions.mark_read(user=ann, up_to=1)) == []
    assert news(lambda: say(bob, "words")) == []
    assert news(lambda: actions.notify_of_decision(user=ann, decision_id=1, detail="warn", text="careful")) == [
        Notified(ann.pk, NOTHING | {"unread": 1})
    ]
    assert news(lambda: actions.silence(user=ann, kinds=["like"])) == [Notified(ann.pk, NOTHING | {"unread": 1})]


@pytest.mark.django_db(transaction=True)
def test_acts_within_a_second_are_announced_together_by_a_task(
    ann: User, bob: User, feeds: Any, still: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[tuple[str, Any, float]] = []
    monkeypatch.setattr(
        celery.app, "send_task", lambda name, args, *more, countdown=0, **options: later.append((name, args, countdown))
    )
    monkeypatch.setattr(actions, "LATE_SECONDS", 60)  # longer than a slow machine needs
    cache.delete(keys.late_notice(ann.pk))
    post = say(ann)
    items.like(user=bob, item=post)
    items.unlike(user=bob, item=post)
    items.like(user=bob, item=post)
    assert not [call for call in later if call[0] == "notifications.announce"], "an act that is done again is not new"
    for user in UserFactory.create_batch(3):
        items.like(user=user, item=post)
    told_late = [call for call in later if call[0] == "notifications.announce"]
    assert told_late == [("notifications.announce", (ann.pk,), 60)]
    cache.delete(keys.late_notice(ann.pk))
    feeds.delete("events")
    actions.announce_to(ann.pk)
    ((_, fields),) = feeds.xrange("events")
    assert events.event_of(fields) == Notified(ann.pk, NOTHING | {"unread": 1})


def test_every_act_bears_the_recipient_of_its_entry(ann: User, bob: User) -> None:
    post = say(ann, "words")
    items.like(user=bob, item=post)
    items.repost(sender=bob, item=post)
    say(bob, "an answer", reply_to=post)
    say(bob, "hello @ann")
    say(bob, "see this", quote_of=post)
    relations.follow(follower=bob, followee=ann)
    relations.follow(follower=ann, followee=bob, bell=True)
    bells.ring(say(bob).pk)
    Act.objects.filter(recipient=bob, notification__kind="follow").delete()
    actions.notify_of_request(follower=bob, followee=ann)
    actions.notify_of_acceptance(follower=ann, followee=bob)
    actions.notify_of_session(session_id=7, host_id=bob.pk, user_ids=[ann.pk])
    actions.notify_of_poll(item=post, user_ids=[bob.pk])
    actions.notify_of_decision(user=ann, decision_id=1, detail="warn", text="careful")
    actions.notify_of_pictures(item=post, decision_id=1, text="no")
    actions.notify_of_scheduled(user=ann, item=None)
    actions.notify_of_report(user_ids=[ann.pk], detail="done")
    actions.notify_staff(user_ids=[bob.pk], detail="report", subject_id=1)
    assert set(Notification.objects.values_list("kind", flat=True)) == set(Kind)
    assert Act.objects.count() == Act.objects.filter(recipient=F("notification__recipient")).count() == len(Kind)


def test_many_who_are_told_at_once_are_one_event(
    ann: User, feeds: Any, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    monkeypatch.setattr(actions, "ONE_BY_ONE", 1)
    readers = UserFactory.create_batch(2)
    with django_capture_on_commit_callbacks(execute=True):
        actions._announce_later([reader.pk for reader in readers])
    written = [events.event_of(fields) for _, fields in feeds.xrange("events")]
    assert [type(one) for one in written] == [events.ManyNotified]


# --- Forgetting ------------------------------------------------------------------------------------------
def test_old_entries_are_dropped_in_batches(
    ann: User, bob: User, cid: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = say(ann)
    for one in (bob, cid):
        items.like(user=one, item=old)
    settings.NOTIFICATION_LIFE = timedelta(days=7)
    Notification.objects.update(position=ids.compose(timezone.now() - timedelta(days=8), 0))
    items.like(user=bob, item=say(ann))
    assert forgetting.forget_old() == 3
    assert (Notification.objects.count(), Act.objects.count()) == (1, 1)
    assert forgetting.forget_old() == 0
    items.like(user=UserFactory(), item=old)
    assert len(told(ann)) == 2


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_sweep_passes_what_it_has_dropped_once_though_nothing_is_cleared(
    ann: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "BATCH", 50)
    settings.NOTIFICATION_LIFE = timedelta(days=7)
    begun, entries, acts = ids.compose(timezone.now() - timedelta(days=9), 0), 2_000, 3
    people = [user.pk for user in UserFactory.create_batch(acts)]
    made = Notification.objects.bulk_create(
        Notification(recipient=ann, kind="like", item_id=number + 1, position=begun + number // 4)
        for number in range(entries)
    )
    Act.objects.bulk_create(Act(notification=one, recipient=ann, actor_id=person) for one in made for person in people)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE notifications_notification, notifications_act")
    indexes = ("notification_age", "act_once", "act_newest")
    before = [entries_read(index) for index in indexes]
    with old_snapshot():
        assert forgetting.forget_old() == entries * (1 + acts)
        read = [entries_read(index) - earlier for index, earlier in zip(indexes, before, strict=True)]
    assert read[0] < 6 * entries
    assert sum(read[1:]) < 6 * entries * acts
    assert not Act.objects.exists()


def test_a_crowd_is_put_away_by_two_statements_and_its_acts_are_dropped_when_they_are_old(
    ann: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "BATCH", 4)
    post, other = say(ann), say(ann)
    for user in UserFactory.create_batch(10):
        items.like(user=user, item=post)
    with statements() as sent:
        assert actions.delete_batch(user=ann) is None
    assert len(sent) == 2
    assert told(ann) == []
    items.like(user=UserFactory(), item=other)
    assert forgetting.forget_old() == 0
    old = ids.compose(timezone.now() - timedelta(days=100), 0)
    for number, act in enumerate(Act.objects.order_by("pk")):  # the remaining entry's act stays the newest
        Act.objects.filter(pk=act.pk).update(id=old + number)
    assert forgetting.forget_old() == 10
    assert (Act.objects.count(), len(told(ann))) == (1, 1)


@pytest.mark.slow
def test_a_deleted_user_leaves_nothing(ann: User, bob: User, cid: User) -> None:
    post, other = say(ann), say(bob)
    for one in (bob, cid):
        items.like(user=one, item=post)
    items.like(user=ann, item=other)
    items.like(user=cid, item=other)
    actions.mark_read(user=ann)
    taken = []
    while count := sum(taken for receiver, taken in account_purged.send(sender=User, user=ann, limit=2) if taken):
        taken.append(count)
    assert taken
    assert not Notification.objects.filter(recipient=ann).exists()
    assert list(Act.objects.values_list("actor", flat=True)) == [cid.pk]
    assert not ReadMark.objects.exists()


def test_forgetting_a_user_is_bounded(ann: User, bob: User, cid: User) -> None:
    for one in (bob, cid):
        items.like(user=one, item=say(ann))
        items.like(user=ann, item=say(one))
    actions.mark_read(user=ann)
    steps = [forgetting.forget_user(user=ann, limit=3) for _ in range(4)]
    assert steps == [3, 3, 1, 0]  # own acts, acts and entries of their list, the read mark


# --- Silenced kinds --------------------------------------------------------------------------------------
def test_silenced_kinds_are_left_out_and_come_back(ann: User, bob: User) -> None:
    post = say(ann)
    items.like(user=bob, item=post)
    relations.follow(follower=bob, followee=ann)
    say(bob, "hello @ann")
    actions.silence(user=ann, kinds=["like", "mention"])
    assert told(ann) == [("follow", ["Bob"])]
    assert unread_count(ann).unread == 1
    assert notifications_page(ann, group="conversations").items == []
    assert told(bob) == []
    items.repost(sender=bob, item=post)
    say(bob, "an answer", reply_to=post)
    assert [kind for kind, _ in told(ann)] == ["reply", "repost", "follow"]
    actions.silence(user=ann, kinds=["reply"])
    assert sorted(kind for kind, _ in told(ann)) == ["follow", "like", "mention", "repost"]
    actions.silence(user=ann, kinds=[])
    assert len(told(ann)) == unread_count(ann).unread == 5
    assert not Silenced.objects.exists()


def test_warnings_cannot_be_silenced(ann: User) -> None:
    with pytest.raises(ValueError, match="warning"):
        actions.silence(user=ann, kinds=["like", "warning"])
    actions.silence(user=ann, kinds=list(CHOOSABLE))
    actions.notify_of_decision(user=ann, decision_id=1, detail="warn", text="Please be kind.")
    assert [kind for kind, _ in told(ann)] == ["warning"]


def test_the_choice_of_kinds_goes_with_the_account(ann: User) -> None:
    actions.silence(user=ann, kinds=["like"])
    assert forgetting.forget_user(user=ann, limit=10) == 1
    assert not Silenced.objects.exists()
