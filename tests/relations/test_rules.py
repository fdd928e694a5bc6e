import itertools
import random

import pytest
from django.db import connection

from items import actions as items
from items.models import Item, Visibility
from items.visibility import visible
from relations import actions as relations
from relations.rules import STRANGER
from storage.connections import fetch
from tests.support.factories import UserFactory

FOR_MANY = f"""
    SELECT pair.reader, pair.item FROM unnest(%(readers)s::bigint[], %(items)s::bigint[]) AS pair (reader, item)
    CROSS JOIN LATERAL (
        SELECT FROM items_item i JOIN accounts_user s ON s.id = i.sender_id
        WHERE i.id = pair.item AND {visible("i", "s", "pair.reader")} OFFSET 0
    ) AS seen
"""
METHODS = ("enable_nestloop", "enable_hashagg", "enable_indexscan", "enable_seqscan")


@pytest.mark.slow
@pytest.mark.django_db
def test_a_rule_for_many_readers_is_the_rule_of_each_by_every_plan() -> None:
    """Also by plans that hash a reader's followees: PostgreSQL may use such a hash for the next reader."""
    chance = random.Random(5)  # noqa: S311 (a made-up world)
    people = [UserFactory() for _ in range(5)]
    for one, other in itertools.permutations(people, 2):
        if chance.random() < 0.6:
            relations.follow(follower=one, followee=other)
    said = [
        items.publish(
            sender=one, content={"text": f"@{people[0].username} @{people[1].username}"}, visibility=visibility
        )
        for one in people
        for visibility in Visibility.values
    ]
    pairs = [(reader.pk, item.pk) for reader in people for item in said]
    chance.shuffle(pairs)
    params = {"readers": [reader for reader, _ in pairs], "items": [item for _, item in pairs]}
    wanted = {
        (reader.pk, pk) for reader in people for pk in Item.objects.visible_to(reader).values_list("pk", flat=True)
    }
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE items_item, accounts_user, relations_follow, relations_block")
        for methods in itertools.product(("on", "off"), repeat=len(METHODS)):
            for name, value in zip(METHODS, methods, strict=True):
                cursor.execute(f"SET LOCAL {name} = {value}")
            cursor.execute(FOR_MANY, params)
            assert set(cursor.fetchall()) == wanted, methods


@pytest.mark.django_db
def test_the_short_rule_for_strangers_is_the_rule() -> None:
    sender, other = UserFactory.create_batch(2)
    relations.follow(follower=other, followee=sender)
    relations.block(blocker=UserFactory(), blocked=sender)
    for visibility in Visibility.values:
        post = items.publish(sender=sender, content={"text": f"@{other.username}"}, visibility=visibility)
        items.publish(sender=other, content={"text": "an answer"}, reply_to=post)
        if visibility == Visibility.PUBLIC:
            items.repost(sender=other, item=post)
    items.delete(item=items.publish(sender=sender, content={"text": "gone"}))
    seen = "SELECT i.id FROM items_item i JOIN accounts_user s ON s.id = i.sender_id WHERE {} ORDER BY i.id"
    found = fetch(seen.format(visible("i", "s", STRANGER)))
    assert found == fetch(seen.format(visible("i", "s")), {"reader": 0})
    assert len(found) == 3  # the public post, its answer and its repost
    assert "relations_" not in visible("i", "s", STRANGER)
