import random
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import Client

from accounts.models import User
from items.actions import delete, publish
from items.filters import filters
from items.hydrate import hydrate
from items.models import Item
from items.threads import threads
from items.threads.threads import ANSWERS, BRANCHES, NEAR, Thread, ancestors, thread_page
from relations.actions import block, follow
from tests.support.effort import tries
from tests.support.factories import ItemFactory, UserFactory
from tests.support.pages import PART
from tests.support.statements import statements

pytestmark = pytest.mark.django_db

STRANGER = AnonymousUser()


def pages(item: Item, reader: Any) -> list[Thread]:
    found: list[Thread] = []
    last_id = None
    (body,) = hydrate([item.pk], reader)
    for _ in range(50):
        page = thread_page(body, reader, last_id=last_id)
        found.append(page)
        if not page.has_more:
            return found
        assert page.last_id is not None
        last_id = int(page.last_id)
    raise AssertionError("the walk does not end")


def shape(item: Item, reader: Any) -> list[tuple[int, list[int], int]]:
    return [
        (int(branch.item.id), [int(one.item.id) for one in branch.answers], branch.hidden)
        for page in pages(item, reader)
        for branch in page.branches
    ]


def reply(to: Item, sender: User | None = None, **fields: Any) -> Item:
    return publish(sender=sender or UserFactory(), content={"text": "so"}, reply_to=to, **fields)


def test_near_people_come_first_then_time(reader: User) -> None:
    author, friend = UserFactory(), UserFactory()
    follow(follower=reader, followee=friend)
    root = ItemFactory(sender=author)
    others = [reply(root) for _ in range(3)]
    by_author, by_friend = reply(root, author), reply(root, friend)
    late = reply(root)
    own = reply(root, reader)
    assert [one for one, _, _ in shape(root, reader)] == [
        *(by_author.pk, by_friend.pk, own.pk),
        *(one.pk for one in [*others, late]),
    ]
    assert [one for one, _, _ in shape(root, STRANGER)][:2] == [by_author.pk, others[0].pk]
    deep = [reply(others[0]) for _ in range(ANSWERS)]
    thanks = reply(others[0], author)
    assert shape(root, STRANGER)[1] == (others[0].pk, [thanks.pk, deep[0].pk], 1), (
        "the author of the post answers first"
    )
    assert [one for one, _, _ in shape(others[0], reader)] == [thanks.pk, *(one.pk for one in deep)]


def test_a_long_thread_goes_on_page_by_page(reader: User) -> None:
    friend = UserFactory()
    follow(follower=reader, followee=friend)
    root = ItemFactory()
    said = [reply(root, friend if place % 3 == 2 else None).pk for place in range(BRANCHES * 3)]
    near = said[2::3][:NEAR]
    found = pages(root, reader)
    assert [len(page.branches) for page in found] == [BRANCHES, BRANCHES, BRANCHES]
    assert [one for one, _, _ in shape(root, reader)] == near + [one for one in said if one not in near]


@pytest.mark.parametrize("scan", [3, 500])
def test_a_page_has_a_bound_of_work(scan: int, reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "SCAN", scan)
    root, hater = ItemFactory(), UserFactory()
    first = reply(root)
    for _ in range(8):
        reply(root, hater)
    last = reply(root)
    block(blocker=hater, blocked=reader)
    assert [one for one, _, _ in shape(root, reader)] == [first.pk, last.pk]
    assert len(pages(root, reader)) == (4 if scan == 3 else 1)


def test_what_answers_something_hidden_stands_under_the_post(reader: User, client: Client) -> None:
    root = ItemFactory()
    gone = reply(root)
    child = reply(gone)
    grandchild = reply(child)
    delete(item=gone)
    assert shape(root, reader) == [(child.pk, [grandchild.pk], 0)]
    page = client.get(f"/items/{root.pk}").content.decode()
    assert "see the post this replies to." in page
    assert f'href="/items/{gone.pk}' not in page


def test_replies_that_are_not_counted_are_told_to_those_who_see_them(reader: User) -> None:
    author = UserFactory()
    follow(follower=reader, followee=author)
    root = ItemFactory()
    answer = reply(root)
    for _ in range(ANSWERS + 2):
        reply(answer, author, visibility="followers")
    under = reply(answer)
    ((_, shown, hidden),) = shape(root, reader)
    assert (len(shown), hidden) == (ANSWERS, 1)
    assert shape(root, STRANGER) == [(answer.pk, [under.pk], 0)]
    deep = reply(reply(root))
    reply(deep, author, visibility="followers")
    for who, told in ((STRANGER, 0), (reader, 1)):
        (under_deep,) = pages(root, who)[-1].branches[-1].answers
        assert (int(under_deep.item.id), under_deep.hidden) == (deep.pk, told)


def test_a_filter_folds_what_others_stand_under(reader: User, client: Client) -> None:
    root = ItemFactory()
    noisy = publish(sender=UserFactory(), content={"text": "noise"}, reply_to=root)
    alone = publish(sender=UserFactory(), content={"text": "noise alone"}, reply_to=root)
    under = reply(noisy)
    filters.create(owner=reader, phrase="noise", whole_word=True, action="hide", expires_at=None)
    client.force_login(reader)
    page = client.get(f"/items/{root.pk}").content.decode()
    assert f'id="item-{under.pk}"' in page
    assert f'id="item-{noisy.pk}"' in page
    assert f'id="item-{alone.pk}"' not in page
    assert page.count("warned filtered") == 1


def test_a_page_keeps_the_nearest_above_it_and_the_post(reader: User) -> None:
    chain = [ItemFactory()]
    for _ in range(threads.ANCESTORS + 4):
        chain.append(reply(chain[-1]))
    (last,) = hydrate([chain[-1].pk], reader)
    expected = [chain[0].pk, *(one.pk for one in chain[-1 - threads.ANCESTORS : -1])]
    assert [int(one.id) for one in ancestors(last, reader)] == expected
    delete(item=chain[-2])
    assert [int(one.id) for one in ancestors(last, reader)] == expected[:-1]
    (root,) = hydrate([chain[0].pk], reader)
    assert ancestors(root, reader) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(tries(3, 60)))
def test_each_reply_stands_somewhere_once(seed: int, reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A visible reply is shown below its parent, or on the post's page if its parent is hidden."""
    chance = random.Random(seed)  # noqa: S311 (a made-up world)
    monkeypatch.setattr(threads, "SCAN", chance.choice([2, 5, 500]))
    people = [reader, *UserFactory.create_batch(4)]
    follow(follower=reader, followee=people[1])
    root = ItemFactory(sender=people[2])
    said = [root]
    for _ in range(30):
        visibility = chance.choice(["public", "public", "public", "followers", "self"])
        said.append(reply(chance.choice(said[-8:]), chance.choice(people), visibility=visibility))
    for item in chance.sample(said[1:], 5):
        delete(item=item)
    block(blocker=people[4], blocked=reader)
    for who in (reader, STRANGER):
        seen = set(Item.objects.visible_to(who).values_list("pk", flat=True))
        for item in said:
            if item.pk not in seen:
                continue
            replies = [one for one in said[1:] if one.pk in seen]
            expected = {one.pk for one in replies if one.reply_to_id == item.pk}
            if item is root:
                expected |= {one.pk for one in replies if one.reply_to_id not in seen}
            found = shape(item, who)
            assert sorted(one for one, _, _ in found) == sorted(expected)
            for one, answers, hidden in found:
                children = {each.pk for each in replies if each.reply_to_id == one}
                assert set(answers) <= children
                assert len(answers) == min(len(children), ANSWERS)
                assert bool(hidden) == (len(children) > ANSWERS)


def test_a_page_of_a_thread_is_one_statement(client: Client, reader: User) -> None:
    root = ItemFactory()
    client.force_login(reader)
    client.get(f"/items/{root.pk}")
    costs = set()
    for _ in range(2):
        for _ in range(BRANCHES):
            reply(reply(reply(root)))
        with statements() as asked:
            page = client.get(f"/items/{root.pk}").content.decode()
        costs.add(len(asked))
        assert sum("parent_id" in one for one in asked) == 1
    assert len(costs) == 1
    assert page.count('class="item under"') == BRANCHES
    first = thread_page(hydrate([root.pk], reader)[0], reader)
    part = client.get(f"/items/{root.pk}?last_id={first.last_id}", **PART).content.decode()
    assert part.count("<article") == 2 * BRANCHES
    assert 'hx-swap-oob="beforeend:#feed"' in part
    assert "<html" not in part
