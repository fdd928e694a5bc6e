import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import transaction

from discover import filling, indexing, opensearch_server
from discover.indexing import PART, create, index_slice, load_batch, write_changes
from discover.models import ItemChange, SearchIndex
from discover.opensearch import MAPPINGS
from discover.opensearch_server import OpenSearchError, server
from items import actions, counts
from items.models import Item, ItemCounts, Status, Visibility
from items.search.words import document
from runtime import metrics
from storage import ids
from storage.breaker import Breaker
from tests.support.at_once import at_once
from tests.support.factories import UserFactory
from tests.support.opensearch import OpenSearch, Trouble, late, obeys_and_cuts, refuses, says, status
from tests.support.statements import statements

pytestmark = [pytest.mark.django_db, pytest.mark.long]


def public() -> set[int]:
    posts = Item.objects.filter(status=Status.PUBLISHED, visibility=Visibility.PUBLIC, reply_to=None, repost_of=None)
    return set(posts.values_list("pk", flat=True))


def many(count: int) -> None:
    sender = UserFactory.create()
    start = ids.compose(datetime(2025, 1, 1, tzinfo=UTC), 0)
    Item.objects.bulk_create([Item(id=start + number, sender=sender) for number in range(count)])


# --- Documents -------------------------------------------------------------------------------------------
def test_a_document(opensearch: OpenSearch) -> None:
    sender = UserFactory.create()
    item = actions.publish(sender=sender, title="On 7 cats", content={"text": "A cat, 2 Cats: 小红书 #Cats #a"})
    ItemCounts.objects.create(item=item, likes=5, replies=2, circle_replies=9, reposts=1)
    index_slice()
    found = opensearch.documents[item.pk]
    words = {word.partition(":")[0] for word in document(item.title, item.text).split()}
    assert set(found.pop("words")) == {word for word in words if len(word) > 1 and not word.isdigit()}
    assert found == {
        "item": item.pk,
        "sender": str(sender.pk),
        "created_at": item.created_at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{item.created_at.microsecond // 1000:03}Z",
        "tags": ["a", "cats"],
        "popularity": 11,
    }


def test_items_that_are_not_public_are_not_found(opensearch: OpenSearch) -> None:
    sender, friend = UserFactory.create_batch(2)
    post = actions.publish(sender=sender, content={"text": "post"})
    actions.publish(sender=sender, content={"text": "reply"}, reply_to=post)
    actions.repost(sender=sender, item=post)
    for visibility in set(Visibility) - {Visibility.PUBLIC}:
        actions.publish(sender=sender, content={"text": f"psst @{friend.username}"}, visibility=visibility)
    index_slice()
    assert set(opensearch.documents) == {post.pk}


def test_what_nobody_could_find_is_not_told(opensearch: OpenSearch) -> None:
    index_slice()
    sender = UserFactory.create()
    psst = actions.publish(sender=sender, content={"text": "psst"}, visibility=Visibility.FOLLOWERS)
    reply = actions.publish(sender=sender, content={"text": "reply"}, reply_to=psst)
    for item in (psst, reply):
        actions.like(user=sender, item=item)
        counts.fold()
        actions.edit(item=item, content={"text": "again"})
        actions.delete(item=item)
    assert not ItemChange.objects.exists()


VERBS = {
    "delete": lambda item: actions.delete(item=item),
    "hold": lambda item: actions.hold(item=item, reasons=["words"]),
    "reject": lambda item: actions.reject(item=item),
    "hide": lambda item: actions.change_visibility(item=item, visibility=Visibility.FOLLOWERS),
}
UNDONE = {
    "delete": lambda item: actions.restore(item=item),
    "hold": lambda item: actions.approve(item=item),
    "reject": lambda item: actions.approve(item=item),
    "hide": lambda item: actions.change_visibility(item=item, visibility=Visibility.PUBLIC),
}


@pytest.mark.parametrize("verb", VERBS)
def test_withdrawn_and_shown_again(opensearch: OpenSearch, verb: str) -> None:
    index_slice()
    item = actions.publish(sender=UserFactory.create(), content={"text": "words"})
    index_slice()
    VERBS[verb](item)
    index_slice()
    assert opensearch.documents == {}
    UNDONE[verb](item)
    index_slice()
    assert set(opensearch.documents) == {item.pk}


def test_an_edit(opensearch: OpenSearch) -> None:
    item = actions.publish(sender=UserFactory.create(), content={"text": "before #one"})
    index_slice()
    actions.edit(item=item, content={"text": "after #two"})
    index_slice()
    assert (opensearch.documents[item.pk]["words"], opensearch.documents[item.pk]["tags"]) == (
        ["after", "two"],
        ["two"],
    )


def test_likes_reach_it_when_they_are_folded(opensearch: OpenSearch) -> None:
    index_slice()
    item = actions.publish(sender=UserFactory.create(), content={"text": "words"})
    for user in UserFactory.create_batch(3):
        actions.like(user=user, item=item)
    index_slice()
    assert opensearch.documents[item.pk]["popularity"] == 0
    with statements() as executed:
        assert counts.fold() == 1
    assert len([sql for sql in executed if "SAVEPOINT" not in sql]) == 2, "a like itself costs nothing more"
    index_slice()
    assert opensearch.documents[item.pk]["popularity"] == 3


# --- No change is lost or undone -------------------------------------------------------------------------
def test_a_change_is_queued_in_its_transaction(opensearch: OpenSearch) -> None:
    index_slice()
    with transaction.atomic():
        actions.publish(sender=UserFactory.create(), content={"text": "words"})
        assert ItemChange.objects.count() == 1
        transaction.set_rollback(True)
    assert not ItemChange.objects.exists()
    index_slice()
    assert opensearch.documents == {}


def test_publishing_does_not_wait_for_it(opensearch: OpenSearch) -> None:
    sender = UserFactory.create()
    asked: list[str] = []
    with opensearch.in_trouble(lambda handler: asked.append(handler.path) is not None):
        item = actions.publish(sender=sender, content={"text": "words"})
        assert asked == []
    index_slice()
    assert set(opensearch.documents) == {item.pk}


TROUBLES: dict[str, Trouble] = {
    "500": status(500),
    "cut": says(b""),
    "no JSON": status(200, b"yes"),
    "cut when it was done": obeys_and_cuts,
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_fails_is_written_later(opensearch: OpenSearch, trouble: str) -> None:
    index_slice()
    item = actions.publish(sender=UserFactory.create(), content={"text": "words"})
    with opensearch.in_trouble(TROUBLES[trouble]):
        index_slice()
    assert ItemChange.objects.count() == 1
    index_slice()
    assert set(opensearch.documents) == {item.pk}
    assert not ItemChange.objects.exists()


@pytest.mark.parametrize("code", [429, 500, 503])
def test_an_item_that_it_cannot_take_now_is_written_later(opensearch: OpenSearch, code: int) -> None:
    index_slice()
    first, second = (actions.publish(sender=UserFactory.create(), content={"text": "words"}) for _ in range(2))
    with opensearch.in_trouble(refuses(second.pk, code)):
        index_slice()
    assert set(opensearch.documents) == {first.pk}
    index_slice()
    assert set(opensearch.documents) == {first.pk, second.pk}


@pytest.mark.slow
def test_an_outage_does_not_hold_the_workers(opensearch: OpenSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    index_slice()
    actions.publish(sender=UserFactory.create(), content={"text": "words"})
    monkeypatch.setattr(opensearch_server, "WRITE_SECONDS", 0.5)
    monkeypatch.setattr(indexing, "pause", Breaker(600))
    failures = metrics.opensearch_failures.labels("index")._value
    before = failures.get()
    with opensearch.in_trouble(late(2)):
        index_slice()
        index_slice()
        assert failures.get() == before + 1, "it was left alone"
    assert ItemChange.objects.exists()
    monkeypatch.setattr(opensearch_server, "WRITE_SECONDS", 10)
    indexing.pause.reset()
    index_slice()
    assert not ItemChange.objects.exists()


def test_an_item_that_it_refuses_holds_up_nothing(
    opensearch: OpenSearch, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"properties": MAPPINGS["properties"] | {"tags": {"type": "integer"}}}
    monkeypatch.setattr(indexing, "MAPPINGS", MAPPINGS | wrong)
    sender = UserFactory.create()
    first, second = (actions.publish(sender=sender, content={"text": text}) for text in ("words #tag", "words"))
    index_slice()
    assert set(opensearch.documents) == {second.pk}
    assert not ItemChange.objects.exists()
    assert f"refuses item {first.pk}: mapper_parsing_exception" in caplog.text


def test_a_late_request_does_no_harm(opensearch: OpenSearch) -> None:
    """Given up by the client, and later than a newer one."""
    index_slice()
    item = actions.publish(sender=UserFactory.create(), content={"text": "before"})
    gone = actions.publish(sender=UserFactory.create(), content={"text": "gone"})
    index_slice()
    old = opensearch.bodies("/_bulk")[-1]
    actions.edit(item=item, content={"text": "after"})
    actions.delete(item=gone)
    index_slice()
    answer = server().write(old)
    assert [done["index"]["status"] for done in answer["items"]] == [409, 409]
    assert set(opensearch.documents) == {item.pk}
    assert opensearch.documents[item.pk]["words"] == ["after"]


def test_versions_grow_though_the_clock_goes_back(opensearch: OpenSearch) -> None:
    index_slice()
    item = actions.publish(sender=UserFactory.create(), content={"text": "before"})
    index_slice()
    actions.edit(item=item, content={"text": "after"})
    with time_machine.travel(datetime.now(UTC) - timedelta(days=1)):
        index_slice()
    assert opensearch.documents[item.pk]["words"] == ["after"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_in_between(opensearch: OpenSearch, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 (a test)
    senders = UserFactory.create_batch(3)
    items: list[Item] = []
    for step in range(60):
        item = chance.choice(items) if items else None
        deed = chance.choice(["publish", "publish", "edit", "restore", "like", *VERBS])
        if deed == "publish" or item is None:
            visibility = chance.choice([Visibility.PUBLIC, Visibility.PUBLIC, Visibility.SELF])
            sender = chance.choice(senders)
            items.append(actions.publish(sender=sender, content={"text": f"step {step}"}, visibility=visibility))
        elif deed == "edit":
            actions.edit(item=item, content={"text": f"edited {step}"})
        elif deed == "restore":
            actions.restore(item=item)
            actions.change_visibility(item=item, visibility=Visibility.PUBLIC)
        elif deed == "like":
            actions.like(user=chance.choice(senders), item=item)
            counts.fold()
        else:
            VERBS[deed](item)
        if chance.random() < 0.3:
            with opensearch.in_trouble(chance.choice([*TROUBLES.values(), lambda handler: False])):
                index_slice()
        if chance.random() < 0.1:
            filling.recommend()
        if chance.random() < 0.05:
            opensearch.delete_indexes()
    actions.publish(sender=senders[0], content={"text": "so that we notice where the index was lost"})
    index_slice()
    index_slice()
    assert set(opensearch.documents) == public()
    popularity = {item_id: found["popularity"] for item_id, found in opensearch.documents.items()}
    counted = dict(ItemCounts.objects.values_list("item_id", "likes"))
    assert popularity == {item_id: counted.get(item_id, 0) for item_id in popularity}
    texts = {item.pk: item.text for item in Item.objects.filter(pk__in=popularity)}
    for item_id, found in opensearch.documents.items():
        assert set(found["words"]) == {word for word in texts[item_id].split() if word.isalpha()}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_writers_take_turns(opensearch: OpenSearch) -> None:
    index_slice()
    sender = UserFactory.create()
    for number in range(40):
        actions.publish(sender=sender, content={"text": f"number {number}"})
    with opensearch.in_trouble(late(0.1)):
        at_once(index_slice, index_slice, index_slice)
    assert set(opensearch.documents) == public()
    assert len(opensearch.bodies("/_bulk")) == 1


# --- The first load --------------------------------------------------------------------------------------
def test_loading_goes_on_where_it_was(opensearch: OpenSearch) -> None:
    many(2 * PART + 10)
    create()
    assert load_batch() == PART
    with opensearch.in_trouble(status(500)), pytest.raises(OpenSearchError):
        load_batch()
    assert indexing.count_left() == PART + 10
    create()  # again: changes nothing
    assert indexing.count_left() == PART + 10
    newest = max(public())
    assert newest in opensearch.documents
    assert [load_batch(), load_batch(), load_batch()] == [PART, 10, 0]
    assert set(opensearch.documents) == public()


@pytest.mark.slow
def test_what_changes_while_it_is_loaded(opensearch: OpenSearch) -> None:
    many(PART + 10)
    create()
    load_batch()
    oldest, newest = Item.objects.get(pk=min(public())), Item.objects.get(pk=max(public()))
    actions.delete(item=oldest)
    actions.delete(item=newest)
    index_slice()
    assert set(opensearch.documents) == public()
    assert {oldest.pk, newest.pk}.isdisjoint(opensearch.documents)


@pytest.mark.slow
def test_bodies_are_bounded(opensearch: OpenSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "BODY_BYTES", 2_000)
    many(100)
    index_slice()
    assert set(opensearch.documents) == public()
    assert len(opensearch.bodies("/_bulk")) > 5


@pytest.mark.slow
def test_an_index_that_somebody_deleted_is_made_again(opensearch: OpenSearch) -> None:
    many(5)
    index_slice()
    opensearch.delete_indexes()
    actions.publish(sender=UserFactory.create(), content={"text": "words"})
    index_slice()
    assert not opensearch.indexes, "and not by itself, without our mapping"
    index_slice()
    assert set(opensearch.documents) == public()


@pytest.mark.slow
def test_the_command(opensearch: OpenSearch, capsys: pytest.CaptureFixture[str]) -> None:
    many(PART + 5)
    call_command("discover_index")
    assert f"{PART + 5:,} items." in capsys.readouterr().out
    assert set(opensearch.documents) == public()
    call_command("discover_index", verbosity=0)
    opensearch.node.ask("DELETE", f"/site-items/_doc/{min(public())}")
    call_command("discover_index", "--anew", verbosity=0)
    assert set(opensearch.documents) == public()
    with opensearch.in_trouble(status(500)), pytest.raises(CommandError, match="500"):
        call_command("discover_index", "--anew", verbosity=0)


def test_the_command_without_an_address() -> None:
    with pytest.raises(CommandError, match="FEEDSITE_OPENSEARCH_URL"):
        call_command("discover_index")


def test_what_was_loaded_past_the_verbs_is_loaded_too(opensearch: OpenSearch) -> None:
    index_slice()
    many(5)
    index_slice()
    assert opensearch.documents == {}
    filling.recommend()
    index_slice()
    assert set(opensearch.documents) == public()


def test_nothing_to_do_costs_little(opensearch: OpenSearch) -> None:
    index_slice()
    asked = len(opensearch.requests)
    with statements() as executed:
        index_slice()
    assert len(opensearch.requests) == asked
    assert len([sql for sql in executed if "SAVEPOINT" not in sql]) <= 4


def test_the_index_is_known(opensearch: OpenSearch) -> None:
    index_slice()
    assert SearchIndex.objects.get().name == "site-items"
    assert opensearch.indexes == ["site-items-1"]
    assert write_changes() == 0
