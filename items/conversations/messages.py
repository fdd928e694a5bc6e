"""The messages of a conversation, and the conversation with some people."""

from collections.abc import Collection

from accounts.models import User
from items.conversations.rules import SCAN
from items.listing import BothListings, ItemPage, listing_sql
from items.models import Context
from items.visibility import for_mentioned
from relations.rules import READER
from storage.connections import fetch, id_array

# The first message has no conversation of its own.
OF_CONVERSATION = [
    f"SELECT id FROM items_item WHERE {column} = %(conversation)s AND id < %(below)s AND id > %(above)s"
    for column in ("conversation_id", "id")
]
MESSAGES = BothListings(
    *(listing_sql(OF_CONVERSATION, order, keep=for_mentioned("i")) for order in ("DESC", "ASC")),
)
# Nobody joins or leaves, so the ids of its people name it.
WITH_PEOPLE = f"""
    SELECT listed.conversation_id FROM (
        SELECT p.conversation_id, p.last FROM items_participant p
        WHERE p.user_id = {READER} AND NOT p.is_request AND p.last IS NOT NULL ORDER BY p.last DESC LIMIT {SCAN}
    ) listed WHERE (
        SELECT array_agg(other.user_id ORDER BY other.user_id) FROM items_participant other
        WHERE other.conversation_id = listed.conversation_id AND other.user_id <> {READER}
    ) = %(people)s::bigint[]
    ORDER BY listed.last DESC LIMIT 1
"""


def messages_page(
    reader: User, conversation_id: int, *, last_id: int | None = None, min_id: int | None = None, limit: int = 20
) -> ItemPage:
    """The visible messages of a conversation below `last_id`, newest first; with `min_id` those directly above it.

    Only for a reader in the conversation (`conversation_of`).
    """
    return MESSAGES.page(
        reader,
        last_id=last_id,
        min_id=min_id,
        limit=limit,
        context=Context.THREAD,
        conversation=conversation_id,
    )


def conversation_with(reader: User, people: Collection[int]) -> int | None:
    """The newest listed conversation of the reader with exactly these people, if it is among the newest `SCAN`."""
    found = fetch(WITH_PEOPLE, {"reader": reader.pk, "people": id_array(sorted(people))})
    return found[0][0] if found else None
