"""Reads of single items, of one sender's items and of an item's replies. Each is one prepared statement."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib.auth.models import AnonymousUser

from accounts.models import User
from items.bodies import ItemBody, Sender
from items.hydrate import COLUMNS, ITEMS, ItemRow, bodies
from items.listing import BothListings, ItemPage, ListedRow, listing_params, listing_sql, page_of, upward_page
from items.models import LISTED, Context, Item
from items.search.query import Query
from items.search.search import search_items
from items.tags.tags import has_tag
from items.visibility import (
    VISIBLE,
    in_circle,
    is_below_hidden_reply,
    is_hidden_reply,
    is_listed,
    original_visible,
    visible_circles,
)
from relations.rules import READER
from storage.connections import fetch, id_array

ONE = f"SELECT {COLUMNS} FROM {ITEMS} WHERE i.id = %(item)s AND {VISIBLE}"
CIRCLES = f"circles AS MATERIALIZED ({visible_circles('%(owner)s', LISTED)}),"
# The owner's items. Only the owner sees held and rejected ones. The subquery hides the owner's id from the planner,
# which would scan all items in order for an owner of a large share of them.
SAID = """
    SELECT i.id FROM items_item i WHERE i.sender_id = (SELECT %(owner)s::bigint) AND i.id < %(below)s
"""
PUBLISHED = f"{SAID} AND i.status = 'published'"
LISTED_ALONE = is_listed("i")
UNPUBLISHED = f"{SAID} AND i.status IN ('in_review', 'rejected') AND %(owner)s = %(reader)s"


def _with_lower_bound(candidates: Sequence[str]) -> list[str]:
    return [f"{one} AND i.id > %(above)s" for one in candidates]


def _listings_down_and_up(candidates: Sequence[str], given: str = "") -> BothListings:
    down, up = listing_sql(candidates, "DESC", given=given, keep=LISTED_ALONE), _with_lower_bound(candidates)
    return BothListings(down, listing_sql(up, "ASC", given=given, keep=LISTED_ALONE))


def _by_circle(kind: str) -> list[str]:
    """SQL of an owner's items of a kind: one index scan per visibility, one for unpublished items. Needs CIRCLES."""
    published = (
        f"""
        {PUBLISHED} AND {kind} AND {in_circle("i", circle)}
            AND EXISTS (SELECT FROM circles WHERE {in_circle("circles", circle)})
        """
        for circle in map("'{}'".format, LISTED)
    )
    return [*published, f"{UNPUBLISHED} AND {kind}"]


# The reader's own newest held posts.
HELD_POSTS = f"""
    SELECT id FROM (
        SELECT i.id, i.status, i.reply_to_id, i.visibility FROM items_item i
        WHERE i.sender_id = {READER} AND i.status IN ('in_review', 'rejected') ORDER BY i.id DESC LIMIT 20
    ) newest
    WHERE status = 'in_review' AND reply_to_id IS NULL AND {is_listed("newest")} ORDER BY id DESC LIMIT 3
"""
REPLIES_OF = [f"{said} AND i.reply_to_id IS NOT NULL" for said in (PUBLISHED, UNPUBLISHED)]
POSTS = _by_circle("i.reply_to_id IS NULL")
PROFILE = _listings_down_and_up(POSTS, CIRCLES)
PICTURED = _listings_down_and_up(_by_circle("i.media <> '[]'"), CIRCLES)
ALL = _listings_down_and_up([*POSTS, *REPLIES_OF], CIRCLES)
TAGGED_ABOVE = listing_sql(
    _with_lower_bound([*POSTS, *REPLIES_OF]), "ASC", given=CIRCLES, keep=has_tag("i.id", "%(tag)s")
)
ANSWERS = _listings_down_and_up(REPLIES_OF)
# The inner SELECT hides how many ids there are. For a single one PostgreSQL would plan anew at each call, in 2 ms.
SENDERS = f"""
    SELECT i.id, s.id, s.username, s.display_name, s.is_big_v, s.avatar::text
    FROM unnest((SELECT %(ids)s::bigint[])) AS answered (id) JOIN items_item i ON i.id = answered.id
    JOIN accounts_user s ON s.id = i.sender_id WHERE {VISIBLE}
"""
THREAD, REPLIES = (
    listing_sql(
        [f"SELECT i.id FROM items_item i WHERE i.{above} = %(item)s AND i.id > %(above)s"],
        "ASC",
        keep=" AND ".join(f"NOT {hidden('i')}" for hidden in rules),
    )
    for above, *rules in (("root_id", is_hidden_reply, is_below_hidden_reply), ("reply_to_id", is_hidden_reply))
)
COUNTED, REPOSTS_COUNTED = 10_000, 1_000
"""Items that a profile's count reads, and originals of reposts among them."""
# The visibility rule runs once per visibility, so counting posts is an index-only scan. For reposts the originals are
# read.
COUNT = f"""
    WITH {CIRCLES}
    item AS MATERIALIZED (
        SELECT i.repost_of_id FROM items_item i WHERE i.sender_id = %(owner)s AND i.status = 'published'
            AND i.reply_to_id IS NULL AND {in_circle("i", "ANY(ARRAY(SELECT visibility FROM circles))")} LIMIT {COUNTED}
    )
    SELECT (SELECT count(*) FROM item WHERE repost_of_id IS NULL) + (
        SELECT count(*) FROM (SELECT repost_of_id FROM item WHERE repost_of_id IS NOT NULL LIMIT {REPOSTS_COUNTED}) i
        WHERE {original_visible("i")}
    )
"""


def find_item(item_id: int, reader: User | AnonymousUser) -> ItemBody | None:
    """The item, if `reader` may see it."""
    found = bodies(fetch(ONE, {"item": item_id, "reader": reader.pk or 0}, into=ItemRow.of), reader, Context.THREAD)
    return found[0] if found else None


def visible_item(item_id: int, reader: User | AnonymousUser) -> ItemBody:
    """Like `find_item`. Raises Item.DoesNotExist."""
    found = find_item(item_id, reader)
    if found is None:
        raise Item.DoesNotExist
    return found


def profile_page(owner: User, reader: User | AnonymousUser, **at: Any) -> ItemPage:
    """Posts and reposts of `owner`, as in `BothListings.page`."""
    return PROFILE.page(reader, owner=owner.pk, context=Context.ACCOUNT, **at)


def own_replies_page(owner: User, reader: User | AnonymousUser, **at: Any) -> ItemPage:
    """Replies by `owner`, as in `BothListings.page`."""
    return ANSWERS.page(reader, owner=owner.pk, context=Context.ACCOUNT, **at)


def all_page(owner: User, reader: User | AnonymousUser, **at: Any) -> ItemPage:
    """Posts, reposts and replies of `owner`, as in `BothListings.page`."""
    return ALL.page(reader, owner=owner.pk, context=Context.ACCOUNT, **at)


def pictured_page(owner: User, reader: User | AnonymousUser, **at: Any) -> ItemPage:
    """Posts and replies of `owner` with media, as in `BothListings.page`."""
    return PICTURED.page(reader, owner=owner.pk, context=Context.ACCOUNT, **at)


def tagged_page(
    owner: User,
    tag: str,
    reader: User | AnonymousUser,
    *,
    last_id: int | None = None,
    min_id: int | None = None,
    limit: int = 20,
) -> ItemPage:
    """Posts and replies of `owner` with a hashtag, as in `BothListings.page`."""
    if min_id is None:
        query = Query(phrases=(), is_open=False, senders=(owner.username,), tags=(tag,), names=())
        return search_items(query, reader, last_id=last_id, limit=limit)
    place = {"owner": owner.pk, "tag": tag}
    return upward_page(
        TAGGED_ABOVE, reader, min_id=min_id, last_id=last_id, limit=limit, context=Context.ACCOUNT, **place
    )


def answered_senders(items: Iterable[ItemBody], reader: User | AnonymousUser) -> dict[str, Sender]:
    """The visible senders of answered items, by id."""
    ids = {int(item.reply_to) for item in items if item.reply_to}
    if not ids:
        return {}
    rows = fetch(SENDERS, {"ids": id_array(ids), "reader": reader.pk or 0})
    return {str(item_id): Sender.from_row(*sender) for item_id, *sender in rows}


def replies_page(
    item: ItemBody, reader: User | AnonymousUser, *, last_id: int | None = None, limit: int = 20
) -> ItemPage:
    """The replies after `last_id`: a reply's direct ones, else the whole thread."""
    params = {"item": int(item.shown.id)} | listing_params(reader, above=last_id or 0, limit=limit)
    return page_of(
        fetch(REPLIES if item.reply_to else THREAD, params, into=ListedRow.of), reader, limit, Context.THREAD
    )


def item_count(owner: User, reader: User | AnonymousUser) -> int:
    """Published items on a profile, up to `COUNTED` and `REPOSTS_COUNTED`."""
    return int(fetch(COUNT, {"owner": owner.pk, "reader": reader.pk or 0})[0][0])
