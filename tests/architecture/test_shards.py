"""The rules by which docs/shards.md says what a statement would meet on several primaries."""

from typing import Any

import pytest
from django.db import connection

from tests.support.shards import CHANGE, CHANGES, COLUMNS, ONE, PARALLEL, REFERENCE, judged


def scan(table: str, alias: str, condition: str, **more: Any) -> dict[str, Any]:
    return {"Node Type": "Index Scan", "Relation Name": table, "Alias": alias, "Index Cond": condition} | more


def joined(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"Node Type": "Nested Loop", "Plans": list(parts)} | more


OF_SENDER = scan("items_item", "i", "(sender_id = '7'::bigint)")
FOLLOWS = scan("relations_follow", "f", "((follower_id = '7'::bigint) AND (followee_id = i.sender_id))")
COUNTS = scan("items_itemcounts", "c", "(item_id = i.id)")


@pytest.mark.parametrize(
    ("plan", "kind"),
    [
        (OF_SENDER, ONE),
        (scan("items_item", "i", "(sender_id = ANY ('{7,8}'::bigint[]))"), PARALLEL),
        (scan("items_item", "i", "(id < '9'::bigint)"), PARALLEL),
        (scan("about_rule", "r", "(id = 1)"), REFERENCE),
        (joined(OF_SENDER, scan("accounts_user", "s", "(id = i.sender_id)")), ONE),
        (joined(OF_SENDER, FOLLOWS), ONE),
        (joined(scan("items_item", "i", "(sender_id = '8'::bigint)"), FOLLOWS), CHANGE),
        (joined(OF_SENDER, COUNTS), CHANGE),
        (joined(OF_SENDER, scan("about_rule", "r", "(id = 1)")), ONE),
        (
            joined(
                scan("items_item", "i", ""), scan("items_item", "o", ""), **{"Hash Cond": "(o.id = i.repost_of_id)"}
            ),
            CHANGE,
        ),
    ],
)
def test_statements_are_classed_by_what_they_compare(plan: dict[str, Any], kind: str) -> None:
    assert judged(plan).kind == kind


def test_changes_bring_rows_together() -> None:
    assert judged(joined(OF_SENDER, COUNTS), CHANGES).kind == ONE
    reader = scan("relations_follow", "f", "((follower_id = '9'::bigint) AND (followee_id = i.sender_id))")
    assert judged(joined(OF_SENDER, reader)).kind == CHANGE
    assert judged(joined(OF_SENDER, reader), CHANGES).kind == ONE, "the copy by followee stands beside the sender"


def test_a_changed_user_stays_where_it_is() -> None:
    card = scan("accounts_user", "u", "(id = f.follower_id)")
    followers = scan("relations_follow", "f", "(followee_id = '7'::bigint)")
    assert judged(joined(followers, card), CHANGES[:1]).kind == PARALLEL
    assert judged(joined(followers, card, **{"Node Type": "LockRows"}), CHANGES[:1]).kind == PARALLEL


@pytest.mark.django_db
def test_the_columns_exist() -> None:

    with connection.cursor() as cursor:
        cursor.execute("SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'")
        there = set(cursor.fetchall())
    assert set(COLUMNS.items()) <= there
