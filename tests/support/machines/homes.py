"""Every page of every home and list always equals the SQL oracle."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import hypothesis.strategies as st
import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now
from hypothesis import HealthCheck, event, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from accounts import actions as accounts
from accounts.levels import actions as levels
from accounts.levels import big_v, policy
from accounts.models import Deletion, Policy, User
from accounts.signals import account_purged
from feedsite import celery
from items import actions as items
from items import counts
from items.bodies import Counts
from items.hydrate import hydrate
from items.models import LISTED, Item, Like, Status, Visibility
from items.quotes import NotQuotableError
from items.signals import item_submitted
from items.text import ContentError
from relations import actions as relations
from relations import lists
from relations.models import Block, Follow, FollowRequest, List, Mute, Tag, TagFollow
from relations.tags import follow_tag, unfollow_tag
from storage import connections, deliveries, keys
from storage.draws import Draw
from tests.support.effort import tries
from tests.support.emptying import empty_tables
from tests.support.timelines import TASKS
from tests.support.workers import prompt_tasks
from timeline import active_fans, backfill, fanout, fold, inbox, oracle, outbox, pull, truth
from timeline.above import SCAN, page_above
from timeline.check import differences
from timeline.home import HomePage, home_page, new_count
from timeline.inbox import Tail
from timeline.lists import list_new_count, list_page
from timeline.models import Delivery
from timeline.oracle import entry_ids, home_ids, list_ids, new_ids

USERS = 5

people = st.integers(0, USERS - 1)
pairs = st.tuples(people, people).filter(lambda pair: pair[0] != pair[1])
some = st.integers(0, 10_000)  # picks one of whatever there is
TAGS = ("red", "green", "blue")
tags = st.sampled_from(TAGS)
texts = st.sampled_from(["words", "#red", "words #blue #red", "#green #blue", "words #green"])


class Home(RuleBasedStateMachine):
    """Tiny windows, and a broker that delays, repeats, reorders and loses messages."""

    queue: list[tuple[str, tuple[Any, ...]]]
    may_be_short = False
    """Pages may stop at their work limit."""

    @initialize(
        follows=st.sets(pairs, min_size=4, max_size=16),
        big_vs=st.sets(people, max_size=2),
        senders=st.lists(people, max_size=20),
        at_levels=st.lists(st.integers(1, 3), min_size=USERS, max_size=USERS),
        tagged=st.sets(st.tuples(people, tags), max_size=4),
        prompt=st.booleans(),
    )
    def found(
        self,
        follows: set[tuple[int, int]],
        big_vs: set[int],
        senders: list[int],
        at_levels: list[int],
        tagged: set[tuple[int, str]],
        prompt: bool,
    ) -> None:
        """Homes are read once. `prompt` workers leave nothing in the queue."""
        empty_tables()
        with connection.cursor() as cursor:
            cursor.execute("SELECT setval('relations_tag_id_seq', 1, false)")  # `lose` names hashtags by id
        connections.feeds_for_tasks().flushall()
        policy.change(push_level=3, inbox_from=0)
        truth.expected.forget()
        policy.renew_generation()
        self.queue = QUEUE
        self.queue.clear()
        self.users = [
            User.objects.create(username=f"user{number}", level=level, last_seen_at=Now(), is_big_v=number in big_vs)
            for number, level in enumerate(at_levels)
        ]
        self.cursors: dict[int, int | None] = {}
        self.prompt = prompt
        for one, other in sorted(follows):
            relations.follow(follower=self.users[one], followee=self.users[other])
        relations.fold_follower_counts()
        for person, tag in sorted(tagged):
            follow_tag(user=self.users[person], tag=tag)
        for number in range(USERS):
            self._page(number, None, 3)
        self.work_all()
        for number, sender in enumerate(senders):
            items.publish(sender=self.users[sender], content={"text": f"first words #{TAGS[number % 3]}"})
        self.work_all()

    # --- People ------------------------------------------------------------------------------------------
    @rule(sender=people, text=texts, visibility=st.sampled_from(Visibility.values), count=st.integers(1, 4))
    def publish(self, sender: int, text: str, visibility: str, count: int) -> None:
        for _ in range(count):
            self._say(sender, visibility, text)

    @precondition(lambda self: Item.objects.exists())
    @rule(sender=people, pick=some, visibility=st.sampled_from(Visibility.values), reposter=st.none() | people)
    def reply(self, sender: int, pick: int, visibility: str, reposter: int | None) -> None:
        """Some replies are for followers only."""
        item = self._say(sender, visibility, "a reply #red", answered=self._item(pick))
        if reposter is not None and item is not None and not item.is_private:
            items.repost(sender=self._fresh(reposter), item=item)

    @precondition(lambda self: Item.objects.exists())
    @rule(pick=some, senders=st.lists(st.tuples(people, st.integers(0, 4)), min_size=1, max_size=4))
    def repost(self, pick: int, senders: list[tuple[int, int]]) -> None:
        """Each pair is a sender and a number of other posts in between."""
        item = self._item(pick)
        if item.is_private:
            return
        for sender, posts in senders:
            items.repost(sender=self._fresh(sender), item=item)
            for _ in range(posts):
                items.publish(sender=self._fresh(sender), content={"text": "words"})

    @precondition(lambda self: Item.objects.published().exists())
    @rule(sender=people, pick=some, visibility=st.sampled_from(Visibility.values), is_reply=st.booleans())
    def quote(self, sender: int, pick: int, visibility: str, is_reply: bool) -> None:
        """What is inside is checked at reading."""
        quoted = self._item(pick)
        with suppress(NotQuotableError):
            self._say(sender, visibility, "a quote", answered=quoted if is_reply else None, quote_of=quoted)

    @precondition(lambda self: Item.objects.exclude(quote_of=None).exists())
    @rule(pick=some)
    def revoke_quote(self, pick: int) -> None:
        quotes = Item.objects.exclude(quote_of=None).order_by("id")
        items.revoke_quote(quote=quotes[pick % quotes.count()])

    @precondition(lambda self: Item.objects.exclude(repost_of=None).exists())
    @rule(sender=people, pick=some)
    def undo_repost(self, sender: int, pick: int) -> None:
        reposts = Item.objects.exclude(repost_of=None).order_by("id")
        items.undo_repost(sender=self._fresh(sender), item=reposts[pick % reposts.count()])

    @precondition(lambda self: Item.objects.exists())
    @rule(person=people, pick=some, undo=st.booleans())
    def like(self, person: int, pick: int, undo: bool) -> None:
        (items.unlike if undo else items.like)(user=self.users[person], item=self._item(pick))

    @rule(sender=people)
    def submit(self, sender: int) -> None:
        items.publish(sender=self._fresh(sender), content={"text": "suspicious #red"})

    @precondition(lambda self: Item.objects.exists())
    @rule(pick=some, verb=st.sampled_from(["hold", "reject", "approve"]))
    def moderate(self, pick: int, verb: str) -> None:
        if verb == "hold":
            items.hold(item=self._item(pick), reasons=["reported"])
        else:
            getattr(items, verb)(item=self._item(pick))

    @precondition(lambda self: Item.objects.filter(repost_of=None).exists())
    @rule(pick=some, text=texts, reader=st.none() | people)
    def edit(self, pick: int, text: str, reader: int | None) -> None:
        """Somebody may read just before."""
        if reader is not None:
            self._page(reader, None, 3)
        items.edit(item=self._item(pick, repost_of=None), content={"text": text})

    @precondition(lambda self: Item.objects.exists())
    @rule(pick=some)
    def delete(self, pick: int) -> None:
        items.delete(item=self._item(pick))

    @precondition(lambda self: Item.objects.filter(status=Status.DELETED).exists())
    @rule(pick=some)
    def restore(self, pick: int) -> None:
        deleted = Item.objects.filter(status=Status.DELETED).order_by("id")
        items.restore(item=deleted[pick % deleted.count()])

    @precondition(lambda self: Item.objects.filter(repost_of=None).exists())
    @rule(pick=some, visibility=st.sampled_from(Visibility.values))
    def show_to(self, pick: int, visibility: str) -> None:
        with suppress(items.AudienceError):
            items.change_visibility(item=self._item(pick, repost_of=None), visibility=visibility)

    @rule(pair=pairs, reposts=st.sampled_from([None, None, False, True]))
    def follow(self, pair: tuple[int, int], reposts: bool | None) -> None:
        relations.follow(follower=self.users[pair[0]], followee=self.users[pair[1]], reposts=reposts)

    @precondition(lambda self: Follow.objects.exists())
    @rule(pick=some, reposts=st.booleans(), posts=st.integers(0, 3))
    def leave_reposts_out(self, pick: int, reposts: bool, posts: int) -> None:
        """Their followee has reposted much lately."""
        follows = Follow.objects.order_by("id")
        follow = follows[pick % follows.count()]
        for item in Item.objects.filter(repost_of=None, reply_to=None, visibility__in=LISTED).order_by("-id")[:posts]:
            items.repost(sender=self._fresh(self._number(follow.followee_id)), item=item)
        relations.follow(follower=follow.follower, followee=follow.followee, reposts=reposts)
        self._page(self._number(follow.follower_id), None, 3)

    @rule(person=people, tag=tags, undo=st.sampled_from([False, False, True]))
    def follow_hashtag(self, person: int, tag: str, undo: bool) -> None:
        (unfollow_tag if undo else follow_tag)(user=self.users[person], tag=tag)

    @precondition(lambda self: TagFollow.objects.exists())
    @rule(pick=some, sender=people, count=st.integers(1, 6), hide=st.sampled_from(["", "block", "mute", "suspend"]))
    def flood(self, pick: int, sender: int, count: int, hide: str) -> None:
        """A sender, perhaps hidden, posts much with a hashtag. Its follower reads on."""
        follows = TagFollow.objects.select_related("tag").order_by("id")
        followed = follows[pick % follows.count()]
        reader = self._number(followed.user_id)
        self._page(reader, None, 3)
        for _ in range(count):
            items.publish(sender=self._fresh(sender), content={"text": f"much #{followed.tag.name}"})
        if hide == "suspend":
            self.suspend(sender, active=False)
        elif hide and sender != reader:
            self.block((reader, sender), undo=False) if hide == "block" else self.mute(
                (reader, sender), False, None, True
            )
        self._page(reader, None, 4)
        self._page(reader, self.cursors.get(reader), 4)

    @rule(sender=people, person=people, tag=tags, at=st.sampled_from(["claimed", "delivered"]), built=st.booleans())
    def follow_amid_a_delivery(self, sender: int, person: int, tag: str, at: str, built: bool) -> None:
        """Perhaps it is the hashtag's first follow. Its outbox may be built meanwhile."""
        item = items.publish(sender=self._fresh(sender), content={"text": f"words #{tag}"})
        self._page(person, None, 3)

        def follow() -> None:
            follow_tag(user=self.users[person], tag=tag)
            self._page(person, None, 3)
            if built:
                self._build_outbox_of(tag)
            self._page(person, None, 3)

        def claimed(item_id: int) -> Any:
            found = claim(item_id)
            follow()
            return found

        def finish(work: Any) -> None:
            follow()
            delivered(work)

        claim, delivered = fanout._claim, fanout._finish
        patched = ("_claim", claimed) if at == "claimed" else ("_finish", finish)
        with patch.object(fanout, *patched):
            TASKS["timeline.fan_out"](item.pk)
        self._page(person, None, 7)

    def _build_outbox_of(self, tag: str) -> None:
        for name, args in list(self.queue):
            if name == "timeline.materialise_outbox" and args[0] == -Tag.objects.get(name=tag).pk:
                self.queue.remove((name, args))
                TASKS[name](*args)

    @rule(person=people, tag=tags, sender=people, what=st.sampled_from(["publish", "edit", "unedit"]), pick=some)
    def build_an_outbox_amid_changes(self, person: int, tag: str, sender: int, what: str, pick: int) -> None:
        """A change happens just before or after the outbox's snapshot."""
        follow_tag(user=self.users[person], tag=tag)
        source = -Tag.objects.get(name=tag).pk
        connections.feeds_for_tasks().delete(keys.tag_outbox(-source))
        self._page(person, None, 3)

        def change() -> None:
            if what == "publish" or not Item.objects.filter(repost_of=None).exists():
                items.publish(sender=self._fresh(sender), content={"text": f"words #{tag}"})
            else:
                text = f"changed #{tag}" if what == "edit" else "changed"
                items.edit(item=self._item(pick, repost_of=None), content={"text": text})
            Delivery.objects.update(not_before=Now() - timedelta(seconds=1))
            for item_id in Delivery.objects.values_list("pk", flat=True):
                TASKS["timeline.fan_out"](item_id)
            self._page(person, None, 3)

        def pulled(source: int, count: int) -> Any:
            if pick % 2:
                change()
            snapshot = pull_outbox(source, count)
            if not pick % 2:
                change()
            return snapshot

        pull_outbox = outbox.pull
        with patch.object(outbox, "pull", pulled):
            self._build_outbox_of(tag)
        self._page(person, None, 7)
        self._page(person, self.cursors.get(person), 7)

    @rule(pair=pairs)
    def unfollow(self, pair: tuple[int, int]) -> None:
        relations.unfollow(follower=self.users[pair[0]], followee=self.users[pair[1]])

    @rule(person=people, is_locked=st.sampled_from([True, True, False]))
    def lock(self, person: int, is_locked: bool) -> None:
        """Waiting requests stay."""
        accounts.edit_profile(user=self._fresh(person), is_locked=is_locked)

    @precondition(lambda self: FollowRequest.objects.exists())
    @rule(pick=some, verb=st.sampled_from(["accept", "accept", "reject", "withdraw", "leave reposts out"]))
    def decide(self, pick: int, verb: str) -> None:
        """The follower read before, and reads on."""
        waiting = FollowRequest.objects.order_by("id")
        request = waiting[pick % waiting.count()]
        pair = {"follower": request.follower, "followee": request.followee}
        self._page(self._number(request.follower_id), None, 3)
        if verb == "withdraw":
            relations.unfollow(**pair)
        elif verb == "leave reposts out":
            relations.follow(**pair, reposts=False)
        else:
            getattr(relations, verb)(**pair)
        self._page(self._number(request.follower_id), None, 3)

    @rule(pair=pairs, undo=st.booleans())
    def block(self, pair: tuple[int, int], undo: bool) -> None:
        verb = relations.unblock if undo else relations.block
        verb(blocker=self.users[pair[0]], blocked=self.users[pair[1]])

    @rule(pair=pairs, undo=st.booleans(), lasts=st.none() | st.just(timedelta(hours=1)), told=st.booleans())
    def mute(self, pair: tuple[int, int], undo: bool, lasts: timedelta | None, told: bool) -> None:
        muter, muted = self.users[pair[0]], self.users[pair[1]]
        if undo:
            relations.unmute(muter=muter, muted=muted)
        else:
            relations.mute(muter=muter, muted=muted, lasts=lasts, notifications=not told)

    @precondition(lambda self: Mute.objects.exclude(expires_at=None).exists())
    @rule(pick=some, is_ended=st.booleans())
    def mute_is_over(self, pick: int, is_ended: bool) -> None:
        """Windows may have forgotten items until then."""
        timed = Mute.objects.exclude(expires_at=None).order_by("id")
        mute = timed[pick % timed.count()]
        Mute.objects.filter(pk=mute.pk).update(expires_at=Now() - timedelta(seconds=1))
        self._page(self._number(mute.muter_id), None, 3)
        if is_ended:
            relations.end_mutes()
            assert not Mute.objects.filter(pk=mute.pk).exists()
        self._page(self._number(mute.muter_id), None, 3)

    # --- Lists -------------------------------------------------------------------------------------------
    @precondition(lambda self: List.objects.count() < 4)
    @rule(owner=people, is_exclusive=st.booleans(), members=st.sets(people))
    def make_list(self, owner: int, is_exclusive: bool, members: set[int]) -> None:
        made = lists.create(owner=self.users[owner], title="a list", is_exclusive=is_exclusive)
        for member in members - {owner}:
            self._add(made, member)

    @precondition(lambda self: List.objects.exists())
    @rule(pick=some, member=people, undo=st.booleans())
    def change_members(self, pick: int, member: int, undo: bool) -> None:
        there = self._list(pick)
        if undo:
            lists.remove(owner=there.owner, list_id=there.pk, member=self.users[member])
        elif self.users[member] != there.owner:
            self._add(there, member)

    @precondition(lambda self: List.objects.exists())
    @rule(pick=some, is_exclusive=st.booleans())
    def make_exclusive(self, pick: int, is_exclusive: bool) -> None:
        there = self._list(pick)
        lists.change(owner=there.owner, list_id=there.pk, is_exclusive=is_exclusive)

    @precondition(lambda self: List.objects.exists())
    @rule(pick=some)
    def delete_list(self, pick: int) -> None:
        there = self._list(pick)
        lists.delete(owner=there.owner, list_id=there.pk)

    @rule(pair=pairs, pick=some, limit=st.integers(1, 5))
    def come_home(self, pair: tuple[int, int], pick: int, limit: int) -> None:
        """Read and forgotten while out of home."""
        owner, member = (self.users[person] for person in pair)
        relations.follow(follower=owner, followee=member)
        made = lists.create(owner=owner, title="out", is_exclusive=True)
        self._add(made, pair[1])
        self._page(pair[0], None, limit)
        if pick % 3 == 0:
            lists.delete(owner=owner, list_id=made.pk)
        elif pick % 3 == 1:
            lists.change(owner=owner, list_id=made.pk, is_exclusive=False)
        else:
            lists.remove(owner=owner, list_id=made.pk, member=member)
        self._page(pair[0], None, limit)
        List.objects.filter(pk=made.pk).delete()

    @precondition(lambda self: List.objects.exists())
    @rule(pick=some, limit=st.integers(1, 5))
    def walk_list(self, pick: int, limit: int) -> None:
        there = self._list(pick)
        expected = list_ids(there.owner_id, there.pk)
        last_id: int | None = None
        walked: list[int] = []
        for _ in range(200):
            page = list_page(there.owner, there.pk, last_id=last_id, limit=limit)
            shown = [int(item.id) for item in page.items]
            walked += shown
            assert len(shown) == limit or not page.has_more or self.may_be_short
            if not page.has_more:
                break
            assert self.may_be_short or len(walked) < len(expected)
            last_id = page.last_id
        assert walked == expected

    @precondition(lambda self: List.objects.exists())
    @rule(pick=some, since=some)
    def count_new_of_list(self, pick: int, since: int) -> None:
        there = self._list(pick)
        ids = list(Item.objects.order_by("id").values_list("pk", flat=True))
        since_id = ids[since % len(ids)] if ids else 1
        expected = sum(item_id > since_id for item_id in list_ids(there.owner_id, there.pk))
        count, capped = list_new_count(there.owner, there.pk, since_id=since_id)
        assert count == expected
        assert not capped

    def _list(self, pick: int) -> List:
        there = List.objects.select_related("owner").order_by("id")
        return there[pick % there.count()]

    def _add(self, to: List, member: int) -> None:
        with suppress(relations.NotFollowedError):
            lists.add(owner=to.owner, list_id=to.pk, member=self.users[member])

    @rule(person=people, active=st.booleans())
    def suspend(self, person: int, active: bool) -> None:
        User.objects.filter(pk=self.users[person].pk, deleted_at=None).update(is_active=active)

    @precondition(lambda self: not User.objects.exclude(deleted_at=None).exists())
    @rule(person=people)
    def leave(self, person: int) -> None:
        accounts.delete_account(user=self._fresh(person))

    @precondition(lambda self: Deletion.objects.exists())
    @rule(limit=st.integers(1, 3))
    def purge(self, limit: int) -> None:
        """A part of the remaining work."""
        account_purged.send(sender=User, user=Deletion.objects.select_related("user").get().user, limit=limit)

    @rule(person=people, pick=some, posts=st.integers(0, 6), limit=st.integers(1, 4))
    def bring_back(self, person: int, pick: int, posts: int, limit: int) -> None:
        """Withdrawn from the middle of home while the reader scrolls, delivered again, and then trimmed off the
        inbox.
        """
        shown = home_ids(self.users[person].pk)
        if len(shown) < 4:
            return
        place = pick % (len(shown) - 1)
        item = Item.objects.get(pk=shown[place])
        items.hold(item=item, reasons=["reported"])
        above = shown[place - 1] if place else shown[place] + 1
        self._page(person, above, limit)
        self._page(person, shown[place + 1], limit)
        items.approve(item=Item.objects.get(pk=item.pk))
        self._page(person, above, limit)
        self.time_passes()
        self.work_all()
        for _ in range(posts):
            items.publish(sender=self._fresh(self.users.index(item.sender)), content={"text": "words"})
        self.work_all()
        self._page(person, above, limit)
        self._page(person, shown[place + 1], limit)

    # --- The policy, and PostgreSQL's own history --------------------------------------------------------
    @rule(level=st.none() | st.integers(1, 4), inbox_from=st.none() | st.sampled_from([0, 2]))
    def change_policy(self, level: int | None, inbox_from: int | None) -> None:
        policy.change(push_level=level, inbox_from=inbox_from)

    @rule()
    def fail_over(self) -> None:
        """It lacks nothing. tests/faults/test_failover.py has one that does."""
        Policy.objects.update(drawn_on=F("drawn_on") + 1)

    # --- Levels and big-V --------------------------------------------------------------------------------
    @rule(person=people, level=st.integers(0, 3))
    def change_level(self, person: int, level: int) -> None:
        """Windows are not trimmed, and are deepened late or never."""
        user = User.objects.filter(pk=self.users[person].pk)
        user.filter(level__gt=level).update(push_generation=F("push_generation") + 1)
        user.filter(level=0).update(window_epoch=Draw())
        if user.filter(level__lt=level).exists():
            QUEUE.append(("timeline.rise", (self.users[person].pk,)))
        user.update(level=level, last_seen_at=Now())

    @rule(person=people, days=st.integers(2, 60))
    def stay_away(self, person: int, days: int) -> None:
        User.objects.filter(pk=self.users[person].pk).update(last_seen_at=Now() - timedelta(days=days))
        levels.lower_levels()

    @rule(person=people)
    def come_back(self, person: int) -> None:
        levels.touch([self.users[person].pk])

    @rule(
        person=people,
        days=st.integers(2, 60),
        at=st.sampled_from(["before", "after"]),
        what=st.sampled_from(["restore", "publish", "lower", "fans", "inbox", "big-v", "follow", "nothing"]),
        pick=some,
    )
    def return_amid_changes(self, person: int, days: int, at: str, what: str, pick: int) -> None:
        """Something happens just before or after the deepening's snapshot."""
        user_id = self.users[person].pk
        self.stay_away(person, days)
        self._page(person, None, 3)
        levels.touch([user_id])
        self._page(person, None, 3)

        def pulled(reader_id: int, count: int) -> Any:
            if at == "before":
                self._interfere(person, what, pick)
                return pull.pull_entries(reader_id, count)
            snapshot = pull.pull_entries(reader_id, count)
            self._interfere(person, what, pick)
            return snapshot

        with patch.object(inbox, "pull_entries", pulled):
            inbox.deepen_or_build(user_id)
        self._page(person, None, 7)
        self._page(person, self.cursors.get(person), 7)

    def _interfere(self, person: int, what: str, pick: int) -> None:
        """Make a change, complete with its deliveries."""
        reader, other = self.users[person], pick % USERS

        def restore() -> None:
            for item_id in home_ids(reader.pk)[pick % 7 :][:2]:
                items.hold(item=Item.objects.get(pk=item_id), reasons=["reported"])
                items.approve(item=Item.objects.get(pk=item_id))

        def publish() -> None:
            for _ in range(1 + pick % 5):
                items.publish(sender=self._fresh(other), content={"text": "words"})

        interferences: dict[str, Callable[[], Any]] = {
            "restore": restore,
            "publish": publish,
            "lower": lambda: self.stay_away(person, 3),
            "fans": lambda: active_fans.build(self.users[other].pk),
            "inbox": lambda: connections.feeds_for_tasks().delete(keys.inbox(reader.pk)),
            "big-v": lambda: self._promote(other) and publish(),
            "follow": lambda: relations.follow(follower=reader, followee=self.users[(person + 1) % USERS]),
            "nothing": lambda: None,
        }
        interferences[what]()
        Delivery.objects.update(not_before=Now() - timedelta(seconds=1))
        for item_id in Delivery.objects.values_list("pk", flat=True):
            TASKS["timeline.fan_out"](item_id)
        self._page(person, self.cursors.get(person), 3)

    @rule(person=people)
    def make_big_v(self, person: int) -> None:
        self._promote(person)

    def _promote(self, person: int) -> bool:
        user = self._fresh(person)
        return user.is_active and big_v.make_big_v(user=user)

    @rule(person=people)
    def demote(self, person: int) -> None:
        big_v.demote(user=self._fresh(person))

    # --- Workers and the broker --------------------------------------------------------------------------
    @precondition(lambda self: self.queue)
    @rule(pick=some, keep=st.booleans())
    def work(self, pick: int, keep: bool) -> None:
        """A kept one runs again later."""
        name, args = self.queue[pick % len(self.queue)]
        if not keep:
            self.queue.remove((name, args))
        TASKS[name](*args)

    @rule()
    def work_all(self) -> None:
        for _ in range(5_000):  # a few hundred if nobody has worked yet
            if not self.queue:
                return
            name, args = self.queue.pop(0)
            TASKS[name](*args)
        raise AssertionError("the work makes work without end")

    @precondition(lambda self: self.queue)
    @rule(pick=some)
    def lose_message(self, pick: int) -> None:
        self.queue.pop(pick % len(self.queue))

    @rule()
    def time_passes(self) -> None:
        past = Now() - timedelta(seconds=1)
        Delivery.objects.update(not_before=past, sweep_at=past)
        backfill.Backfill.objects.update(sweep_at=past)
        policy.renew_after_failover()
        relations.fold_follower_counts()
        counts.fold()
        deliveries.sweep(Delivery, fanout.fan_out)
        backfill.sweep()

    # --- Redis -------------------------------------------------------------------------------------------
    @rule(
        person=people,
        kind=st.sampled_from(["inbox", "outbox", "hashtag", "hint", "tail", "fans", "everything"]),
        shard=st.integers(0, 1),
    )
    def lose(self, person: int, kind: str, shard: int) -> None:
        user_id = self.users[person].pk
        if kind == "everything":
            connections.feeds_for_tasks().flushall()
            return
        key = {
            "inbox": keys.inbox(user_id),
            "outbox": keys.outbox(user_id),
            "hashtag": keys.tag_outbox(1 + person % len(TAGS)),
            "hint": keys.merged_outboxes(user_id),
            "tail": keys.tail(user_id),
            "fans": keys.active_fans(user_id, shard),
        }[kind]
        connections.feeds_for_tasks().delete(key)

    # --- Readers: the oracle at every moment -------------------------------------------------------------
    @rule(person=people, limit=st.integers(1, 7))
    def read_top(self, person: int, limit: int) -> None:
        self._page(person, None, limit)

    @rule(person=people, limit=st.integers(1, 7))
    def read_on(self, person: int, limit: int) -> None:
        self._page(person, self.cursors.get(person), limit)

    @precondition(lambda self: Item.objects.exists())
    @rule(person=people, pick=some, limit=st.integers(1, 7), offset=st.integers(-1, 1))
    def read_anywhere(self, person: int, pick: int, limit: int, offset: int) -> None:
        self._page(person, self._item(pick).pk + offset, limit)

    @rule(person=people, limit=st.integers(1, 5))
    def walk(self, person: int, limit: int) -> None:
        last_id: int | None = None
        walked: list[int] = []
        for _ in range(200):
            page = self._page(person, last_id, limit)
            walked += [int(item.id) for item in page.items]
            if not page.has_more:
                break
            last_id = page.last_id
        assert walked == home_ids(self.users[person].pk)

    @precondition(lambda self: Item.objects.exists())
    @rule(person=people, pick=some, limit=st.integers(1, 7))
    def read_up(self, person: int, pick: int, limit: int) -> None:
        user, min_id = self._fresh(person), self._item(pick).pk
        expected = home_ids(user.pk, above=0)
        above = [item_id for item_id in expected if item_id > min_id]
        shown = [int(item.id) for item in page_above(user, min_id=min_id, limit=limit).items]
        is_bounded = self.may_be_short or sum(item_id > min_id for item_id in entry_ids(user.pk)) > SCAN
        assert shown == above[len(above) - (len(shown) if is_bounded else min(limit, len(above))) :]

    @rule(person=people, pick=some)
    def count_new(self, person: int, pick: int) -> None:
        ids = list(Item.objects.order_by("id").values_list("pk", flat=True))
        since = ids[pick % len(ids)] if ids else 1
        expected = len(new_ids(self.users[person].pk, since=since))
        count, capped = new_count(self._fresh(person), since_id=since)
        assert count == expected or (capped and self.may_be_short and count < expected)
        assert self.may_be_short or not capped

    @rule(person=people)
    def counts(self, person: int) -> None:
        reader = self._fresh(person)
        published, likes = list(Item.objects.published()), set(Like.objects.values_list("item", "user"))
        for item in hydrate(list(Item.objects.filter(repost_of=None).values_list("pk", flat=True)), reader):
            pk = int(item.id)
            wide = Visibility.values[:1] if item.visibility == Visibility.PUBLIC else Visibility.values[:3]
            likers = {user for liked, user in likes if liked == pk}
            reposters = [one.sender_id for one in published if one.repost_of_id == pk]
            replies = sum(pk in (one.reply_to_id, one.root_id) and one.visibility in wide for one in published)
            quotes = sum(
                one.quote_of_id == pk and not one.is_quote_revoked and one.visibility == Visibility.PUBLIC
                for one in published
            )
            assert item.counts == Counts(len(likers), replies, len(reposters), quotes)
            if item.quote:
                assert (item.quote.item is not None) == self._shows_inside(reader, Item.objects.get(pk=item.id))
            assert (item.liked, item.reposted) == (reader.pk in likers, reader.pk in reposters)

    def _shows_inside(self, reader: User, quote: Item) -> bool:
        """Visible, not taken off, not muted, not by somebody who blocks the quoting sender."""
        quoted = Item.objects.get(pk=quote.quote_of_id)
        return (
            not quote.is_quote_revoked
            and Item.objects.published().visible_to(reader).filter(pk=quoted.pk).exists()
            and not Mute.objects.filter(muter=reader, muted=quoted.sender_id).exists()
            and not Block.objects.filter(blocker=quoted.sender_id, blocked=quote.sender_id).exists()
        )

    @invariant()
    def requests_are_no_follows(self) -> None:
        for follower, followee in FollowRequest.objects.values_list("follower", "followee"):
            assert not Follow.objects.filter(follower=follower, followee=followee).exists()

    @invariant()
    def workers_keep_up(self) -> None:
        if getattr(self, "prompt", False):
            self.work_all()

    def teardown(self) -> None:
        if not hasattr(self, "users"):
            return
        for person in range(USERS):
            self.walk(person, 4)
        for place in range(List.objects.count()):
            self.walk_list(place, 3)
        self.time_passes()
        self.work_all()
        self.time_passes()
        self.work_all()
        assert not Delivery.objects.exists()
        for user in self.users:
            assert list(differences([user.pk])) == []
            self.walk(self._number(user.pk), 3)
        self.counts(Item.objects.count() % USERS)

    # --- Behind the rules --------------------------------------------------------------------------------
    def _fresh(self, person: int) -> User:
        return User.objects.get(pk=self.users[person].pk)

    def _say(
        self, sender: int, visibility: str, text: str, *, answered: Item | None = None, quote_of: Item | None = None
    ) -> Item | None:
        """Mentions the next two people. None if nobody could see it."""
        names = " ".join(f"@user{(sender + step) % USERS}" for step in (1, 2))
        fields: dict[str, Any] = {"content": {"text": f"{text} {names}"}, "visibility": visibility}
        try:
            return items.publish(sender=self._fresh(sender), reply_to=answered, quote_of=quote_of, **fields)
        except ContentError:
            return None

    def _number(self, user_id: int) -> int:
        return [user.pk for user in self.users].index(user_id)

    def _item(self, pick: int, **fields: Any) -> Item:
        there = Item.objects.filter(**fields).order_by("id")
        return there[pick % there.count()]

    def _page(self, person: int, last_id: int | None, limit: int) -> Any:
        user = self._fresh(person)
        page = home_page(user, last_id=last_id, limit=limit)
        expected = [item_id for item_id in home_ids(user.pk) if last_id is None or item_id < last_id]
        event(f"page from {'+'.join(page.sources)}")
        shown = [int(item.id) for item in page.items]
        if self.may_be_short and page.has_more and len(shown) < limit:
            event("a short page")
            assert page.last_id is not None
            assert last_id is None or page.last_id < last_id
            assert shown == [item_id for item_id in expected if item_id >= page.last_id], page.sources
        else:
            assert shown == expected[:limit], page.sources
            assert page.has_more == (len(expected) > limit) or (self.may_be_short and page.has_more), page.sources
        self._folds(user.pk, page)
        self._reasons(user, page)
        if shown:
            assert page.last_id is not None
            assert page.last_id <= shown[-1]
        self.cursors[person] = page.last_id if page.has_more else None
        return page

    def _reasons(self, reader: User, page: HomePage) -> None:
        by_sender = entry_ids(reader.pk, by_sender=True)
        followed = TagFollow.objects.filter(user=reader).values_list("tag__name", flat=True)
        for item in page.items:
            carried = [f"#{tag}" for tag in sorted(followed) if f"#{tag}" in item.text]
            assert item.reason == carried[0] if int(item.id) not in by_sender else not str(item.reason).startswith("#")
            if int(item.id) not in by_sender:
                event("an item by a hashtag alone")

    def _folds(self, reader_id: int, page: HomePage) -> None:
        entries = entry_ids(reader_id)
        roots = dict(Item.objects.filter(pk__in=entries).values_list("pk", "repost_of"))
        for item in page.items:
            if not item.repost_of:
                continue
            place = entries.index(int(item.id))
            near = entries[place + 1 : place + 1 + oracle.REACH]
            others = sum(roots[entry] == int(item.repost_of.id) for entry in near)
            assert page.others.get(item.id, 0) == others


QUEUE: list[tuple[str, tuple[Any, ...]]] = []


def suspect(item: Item, **kwargs: Any) -> list[str]:
    return ["words"] if item.text == "suspicious" else []


@pytest.fixture
def tiny_homes(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> Iterator[None]:
    """A broker that is `QUEUE`, and windows so small that their ends are always involved."""
    monkeypatch.setattr(django_settings, "LEVEL_CAPS", {1: 2, 2: 4, 3: 6})
    monkeypatch.setattr(django_settings, "WINDOW_SLACK", 1)
    monkeypatch.setattr(django_settings, "RATE_SCALE", 1e6)  # strangers write to each other
    monkeypatch.setattr(django_settings, "OUTBOX_CAP", 4)
    monkeypatch.setattr(django_settings, "PENDING_CAP", 4)
    monkeypatch.setattr(django_settings, "FAN_OUT_RANGE", 2)
    monkeypatch.setattr(django_settings, "ACTIVE_FANS_SHARDS", 2)
    monkeypatch.setattr(django_settings, "FAN_OUT_ATTEMPTS", 1_000)
    monkeypatch.setattr(Tail, "LENGTH", 24)
    monkeypatch.setattr(fold, "REACH", 3)
    monkeypatch.setattr(oracle, "REACH", 3)
    monkeypatch.setattr(celery.app, "send_task", prompt_tasks(lambda *task: QUEUE.append(task)))
    item_submitted.connect(suspect)
    yield
    item_submitted.disconnect(suspect)
    policy.change(**policy.initial_policy()._asdict())


def walk_all(machine: type[Home], *, examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=tries(12, 30),
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
