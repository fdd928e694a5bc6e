"""Every walk and unread count equals a plain oracle that checks each act by itself."""

from collections.abc import Collection
from contextlib import suppress
from datetime import UTC
from typing import Any

import hypothesis.strategies as st
import pytest
from django.conf import settings as django_settings
from django.db.models import F, Q, QuerySet
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from accounts import deactivation
from accounts.models import User
from items import actions as items
from items.models import Item, Like, MutedThread, Visibility
from items.text import ContentError
from items.threads.muting import mute_thread, unmute_thread
from notifications import actions, feed
from notifications.feed import Entry, notifications_page, unread_count
from notifications.models import CHOOSABLE, Act, Kind, Notification, ReadMark, Silenced
from notifications.ungrouped import ActFilter, NotifiedAct, acts_page, unread_acts
from relations import actions as relations
from relations.models import Block, Follow, Mute
from storage.ids import SEQUENCE_BITS
from tests.support.effort import tries
from tests.support.emptying import empty_tables

USERS = 4
people = st.integers(0, USERS - 1)
pairs = st.tuples(people, people).filter(lambda pair: pair[0] != pair[1])
some = st.integers(0, 10_000)

BRIEF = 50 << SEQUENCE_BITS
"""50 ms: many steps take less, many more."""

Line = tuple[str, int | None, int, tuple[int, ...], bool]
"""Kind, item, newest act, who acted (newest first), unread."""
Key = tuple[str, int]
"""An entry's key: kind and item."""


# --- The oracle ------------------------------------------------------------------------------------------
def hidden(reader: User, other: int) -> bool:
    blocks = Q(blocker=reader, blocked=other) | Q(blocker=other, blocked=reader)
    return Block.objects.filter(blocks).exists() or Mute.objects.filter(muter=reader, muted=other).exists()


def stands(entry: Notification, act: Act, reader: User) -> bool:
    if entry.kind == Kind.LIKE:
        return Like.objects.filter(item=entry.item, user=act.actor).exists()
    if entry.kind == Kind.REPOST:
        return Item.objects.visible_to(reader).published().filter(repost_of=entry.item_id, sender=act.actor).exists()
    if entry.kind == Kind.FOLLOW:
        follow = Follow.objects.filter(follower=act.actor, followee=reader).first()
        return bool(follow and follow.created_at.astimezone(UTC).date() == entry.day)
    return True


def is_muted(reader: User, item_id: int) -> bool:
    item = Item.objects.get(pk=item_id)
    return MutedThread.objects.filter(user=reader, root=item.root_id or item.pk).exists()


def oracle(reader: User) -> list[tuple[int, Line]]:
    """The whole list as (position, line)."""
    mark = ReadMark.objects.filter(user=reader).first()
    lines: list[tuple[int, Line]] = []
    choice = Silenced.objects.filter(user=reader).first()
    for entry in Notification.objects.filter(recipient=reader).order_by("-position"):
        if choice and entry.kind in choice.kinds:
            continue
        if entry.item_id and not Item.objects.visible_to(reader).filter(pk=entry.item_id).exists():
            continue
        if entry.item_id and is_muted(reader, entry.item_id):
            continue
        if entry.kind in (Kind.MENTION, Kind.REPLY) and entry.item and entry.item.is_private:
            continue  # Messages has it
        acts = [
            act
            for act in entry.acts.select_related("actor").order_by("-id")
            if act.actor.is_active and not hidden(reader, act.actor_id) and stands(entry, act, reader)
        ]
        if acts:
            unread = acts[0].pk > (mark.up_to if mark else 0)
            who = tuple(act.actor_id for act in acts)
            lines.append((entry.position, (entry.kind, entry.item_id, acts[0].pk, who, unread)))
    return lines


def told_acts(reader: User) -> list[NotifiedAct]:
    """The acts, newest first, each checked by itself."""
    mark = ReadMark.objects.filter(user=reader).first()
    choice = Silenced.objects.filter(user=reader).first()
    return [
        NotifiedAct(act.pk, entry.kind, entry.item_id, act.actor_id)
        for act in Act.objects.filter(recipient=reader).order_by("-id").select_related("actor")
        if act.pk > (mark.put_away if mark else 0)
        and (entry := Notification.objects.filter(pk=act.notification_id).first())
        and not (choice and entry.kind in choice.kinds)
        and (not entry.item_id or Item.objects.visible_to(reader).filter(pk=entry.item_id).exists())
        and not (entry.item_id and is_muted(reader, entry.item_id))
        and act.actor.is_active
        and not hidden(reader, act.actor_id)
        and stands(entry, act, reader)
    ]


def walked(reader: User, kinds: Collection[str], limit: int, *, upward: bool) -> list[NotifiedAct]:
    """All acts, page by page."""
    found, edge = [], None
    while True:
        wanted = ActFilter(kinds, upward=upward)
        if edge is not None:
            wanted = wanted._replace(above=edge) if upward else wanted._replace(below=edge)
        page = acts_page(reader, wanted, limit=limit)
        found += page.shown
        if not page.has_more:
            return found
        edge = page.last_id


def places(lines: list[tuple[int, Line]]) -> set[tuple[Key, int]]:
    """Followers are left out: a day may have two of their entries around midnight."""
    return {((kind, item), position) for position, (kind, item, *_) in lines if item}


def agrees(entry: Entry, line: Line) -> bool:
    kind, item, newest, who, unread = line
    return (
        (entry.kind, int(entry.item.id) if entry.item else None, int(entry.id), entry.unread)
        == (kind, item, newest, unread)
        and [int(card.id) for card in entry.actors] == list(who[: feed.ACTORS_SHOWN])
        and (entry.count, entry.capped) == (min(len(who), feed.ACTORS_CAP), len(who) > feed.ACTORS_CAP)
    )


# --- The machine -----------------------------------------------------------------------------------------
class Notifications(RuleBasedStateMachine):
    @initialize(follows=st.sets(pairs, max_size=6), still=st.sampled_from([0, BRIEF, 2**50]))
    def found(self, follows: set[tuple[int, int]], still: int) -> None:
        """`still`: entries move at once, after a while, or never."""
        empty_tables()
        PATCH.setattr(feed, "STILL", still)
        PATCH.setattr(django_settings, "RATE_SCALE", 1e6)
        self.users = [User.objects.create(username=f"user{number}") for number in range(USERS)]
        self.away: set[tuple[int, int | None, int]] = set()
        self.walks: dict[int, tuple[int | None, list[Key], set[tuple[Key, int]]]] = {}
        for one, other in sorted(follows):
            relations.follow(follower=self.users[one], followee=self.users[other])

    def _item(self, pick: int) -> Item:
        all_items = Item.objects.order_by("id")
        return all_items[pick % all_items.count()]

    # --- Acts of people
    @rule(sender=people, visibility=st.sampled_from(Visibility.values), named=st.sets(people, max_size=2))
    def publish(self, sender: int, visibility: str, named: set[int]) -> None:
        text = " ".join(["words", *(f"@user{one}" for one in sorted(named))])
        with suppress(ContentError):  # a private mention of nobody
            items.publish(sender=self.users[sender], content={"text": text}, visibility=visibility)

    @precondition(lambda self: Item.objects.exists())
    @rule(sender=people, pick=some, named=st.sets(people, max_size=2))
    def reply(self, sender: int, pick: int, named: set[int]) -> None:
        text = " ".join(["a reply", *(f"@user{one}" for one in sorted(named))])
        with suppress(ContentError):  # a reply to a private mention by an outsider
            items.publish(sender=self.users[sender], content={"text": text}, reply_to=self._item(pick))

    @precondition(lambda self: Item.objects.exists())
    @rule(who=people, pick=some, undo=st.booleans())
    def like(self, who: int, pick: int, undo: bool) -> None:
        (items.unlike if undo else items.like)(user=self.users[who], item=self._item(pick))

    @precondition(lambda self: Item.objects.exists())
    @rule(who=people, pick=some, undo=st.booleans())
    def repost(self, who: int, pick: int, undo: bool) -> None:
        with suppress(items.AudienceError):
            (items.undo_repost if undo else items.repost)(sender=self.users[who], item=self._item(pick))

    @precondition(lambda self: Item.objects.filter(repost_of=None).exists())
    @rule(pick=some, named=st.sets(people, max_size=2))
    def edit(self, pick: int, named: set[int]) -> None:
        posts = Item.objects.filter(repost_of=None).order_by("id")
        text = " ".join(["other words", *(f"@user{one}" for one in sorted(named))])
        items.edit(item=posts[pick % posts.count()], content={"text": text})

    @precondition(lambda self: Item.objects.exists())
    @rule(pick=some, change=st.sampled_from([items.delete, items.restore, items.approve, items.reject]))
    def withdraw(self, pick: int, change: Any) -> None:
        change(item=self._item(pick))

    @precondition(lambda self: Item.objects.filter(repost_of=None).exists())
    @rule(pick=some, visibility=st.sampled_from(Visibility.values))
    def show_to(self, pick: int, visibility: str) -> None:
        posts = Item.objects.filter(repost_of=None).order_by("id")
        with suppress(items.AudienceError):
            items.change_visibility(item=posts[pick % posts.count()], visibility=visibility)

    @rule(pair=pairs, undo=st.booleans())
    def follow(self, pair: tuple[int, int], undo: bool) -> None:
        change = relations.unfollow if undo else relations.follow
        change(follower=self.users[pair[0]], followee=self.users[pair[1]])

    @rule(pair=pairs, undo=st.booleans())
    def block(self, pair: tuple[int, int], undo: bool) -> None:
        change = relations.unblock if undo else relations.block
        change(blocker=self.users[pair[0]], blocked=self.users[pair[1]])

    @rule(pair=pairs, undo=st.booleans())
    def mute(self, pair: tuple[int, int], undo: bool) -> None:
        change = relations.unmute if undo else relations.mute
        change(muter=self.users[pair[0]], muted=self.users[pair[1]])

    @precondition(lambda self: Item.objects.exists())
    @rule(who=people, pick=some, undo=st.booleans())
    def mute_thread(self, who: int, pick: int, undo: bool) -> None:
        (unmute_thread if undo else mute_thread)(user=self.users[who], item=self._item(pick))

    @rule(who=people, back=st.booleans())
    def leave(self, who: int, back: bool) -> None:
        (deactivation.reactivate if back else deactivation.deactivate)(user=self.users[who])

    @rule(who=people, kinds=st.sets(st.sampled_from([kind.value for kind in CHOOSABLE]), max_size=3))
    def silence(self, who: int, kinds: set[str]) -> None:
        actions.silence(user=self.users[who], kinds=kinds)

    # --- How they read
    @rule(who=people, pick=some)
    def mark(self, who: int, pick: int) -> None:
        shown = notifications_page(self.users[who], limit=100).items
        actions.mark_read(user=self.users[who], up_to=int(shown[pick % len(shown)].id) if shown else None)

    @rule(who=people, limit=st.integers(1, 3))
    def walk_on(self, who: int, limit: int) -> None:
        """Read the next page, or start over. No entry repeats, and none that stays in place is missed."""
        reader = self.users[who]
        now = places(oracle(reader))
        last_id, seen, stayed = self.walks.pop(who, (None, [], now))
        page = notifications_page(reader, last_id=last_id, limit=limit)
        seen = seen + [(entry.kind, int(entry.item.id)) for entry in page.items if entry.item]
        stayed = stayed & now
        assert len(set(seen)) == len(seen)
        if page.has_more:
            assert page.last_id
            self.walks[who] = (int(page.last_id), seen, stayed)
        else:
            assert {entry for entry, _ in stayed} <= set(seen)

    # --- Invariants
    @invariant()
    def lists_are_what_the_oracle_says(self) -> None:
        for reader in getattr(self, "users", []):
            lines = oracle(reader)
            for limit in (2, 100):
                last_id, walked = None, []
                while True:
                    page = notifications_page(reader, last_id=last_id, limit=limit)
                    walked += page.items
                    if not page.has_more:
                        break
                    assert len(page.items) == limit
                    assert page.last_id
                    assert last_id is None or int(page.last_id) < last_id
                    last_id = int(page.last_id)
                assert len(walked) == len(lines)
                assert all(agrees(entry, line) for entry, (_, line) in zip(walked, lines, strict=True))
            assert unread_count(reader).unread == sum(line[-1] for _, line in lines)
            conversations = notifications_page(reader, group="conversations", limit=100).items
            assert [entry.id for entry in conversations] == [
                str(line[2]) for _, line in lines if line[0] in ("reply", "mention")
            ]

    def _note_away(self, acts: QuerySet[Act]) -> None:
        self.away |= set(acts.values_list("recipient", "notification__item", "actor"))

    @rule(who=people)
    def put_away(self, who: int) -> None:
        self._note_away(Act.objects.filter(recipient=self.users[who]))
        assert actions.delete_batch(user=self.users[who]) is None
        assert not told_acts(self.users[who])

    @rule(who=people, pick=some)
    def put_one_away(self, who: int, pick: int) -> None:
        """All other acts keep their ids."""
        before = told_acts(self.users[who])
        if before:
            gone = before[pick % len(before)]
            assert not actions.delete_act(user=self.users[(who + 1) % USERS], act_id=gone.id)
            self._note_away(Act.objects.filter(pk=gone.id))
            assert actions.delete_act(user=self.users[who], act_id=gone.id)
            assert told_acts(self.users[who]) == [act for act in before if act != gone]

    @invariant()
    def acts_are_listed_one_by_one_and_keep_their_ids(self) -> None:
        for reader in getattr(self, "users", []):
            acts = told_acts(reader)
            for kinds in (set(Kind), {Kind.MENTION, Kind.REPLY}, {Kind.LIKE}):
                expected = [act for act in acts if act.kind in kinds]
                for limit in (1, 3, 100):
                    assert walked(reader, kinds, limit, upward=False) == expected
                    assert walked(reader, kinds, limit, upward=True) == expected[::-1]
            mark = ReadMark.objects.filter(user=reader).first()
            unread = sum(act.id > (mark.up_to if mark else 0) for act in acts)
            assert len(unread_acts(reader, set(Kind), cap=5)) == min(unread, 5)

    @invariant()
    def entries_are_not_far_behind_their_acts(self) -> None:
        late = Act.objects.filter(pk__gte=F("notification__position") + max(feed.STILL, 1))
        assert not late.exclude(pk=F("notification__position")).exists()

    @invariant()
    def whoever_is_liked_or_followed_is_told(self) -> None:
        acts = set(Act.objects.values_list("notification__recipient", "notification__item", "actor"))
        likes = Like.objects.exclude(user=F("item__sender")).values_list("item__sender", "item", "user")
        follows = Follow.objects.values_list("followee", "follower")
        assert {*likes, *((followee, None, follower) for followee, follower in follows)} <= acts | self.away


PATCH = pytest.MonkeyPatch()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.django_db(transaction=True)
def test_every_list_is_what_the_oracle_says() -> None:
    try:
        run_state_machine_as_test(
            Notifications,
            settings=settings(
                max_examples=tries(4, 40),
                stateful_step_count=tries(12, 25),
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        PATCH.undo()
