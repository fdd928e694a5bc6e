"""Who likes and who reposted an item."""

from relations.people import PeopleTable
from relations.rules import READER, is_wanted

SHOWN = f"u.is_active AND {is_wanted(READER, 'u.id')}"
LIKERS = PeopleTable("items_like", "item_id", "user_id", shown=SHOWN)
# By user id, which an index has. Ordering by time would sort all reposts of a viral item.
REPOSTERS = PeopleTable(
    "items_item",
    "repost_of_id",
    "sender_id",
    shown=SHOWN,
    place="sender_id",
    kept="f.status = 'published' AND f.repost_of_id IS NOT NULL",
)
