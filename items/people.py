"""The people who like an item, and those who reposted it: lists as relations.people has them, without those with whom
the reader has a block, and without those whom the reader mutes.
"""

from relations.people import Listed
from relations.rules import READER, is_wanted

SHOWN = f"u.is_active AND {is_wanted(READER, 'u.id')}"
LIKERS = Listed("items_like", "item_id", "user_id", shown=SHOWN)
# In the order of the people's ids, for which there is an index: a sort by time would read all reposts of a viral item.
REPOSTERS = Listed(
    "items_item",
    "repost_of_id",
    "sender_id",
    shown=SHOWN,
    place="sender_id",
    kept="f.status = 'published' AND f.repost_of_id IS NOT NULL",
)
