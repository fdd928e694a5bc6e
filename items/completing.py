"""Completions of names, hashtags and emoji."""

from typing import NamedTuple

from accounts.models import User
from items.emoji import Emoji, emoji_named
from items.search.query import parse
from items.search.user_search import search_users
from items.tags.popular import popular_with_prefix
from items.visibility import public_post
from storage.connections import fetch
from web.hashtags import canonical_tag
from web.letters import folded

COUNT = 6
"""Completions offered."""
FOUND = 20
"""Users considered for a completion."""
TAGS = 30
"""Hashtags with the typed beginning that are considered, in alphabetical order."""
USES = 20
"""Newest items considered for each hashtag."""
SIGNS = {"@": "@", "\uff20": "@", "#": "#", "\uff03": "#"}
LENGTH = 100

# Each step is one index probe: the next tag after the last. Canonical tags have no character above the end of the
# range.
TAGGED = f"""
    WITH RECURSIVE walk (tag, place) AS (
        (SELECT t.tag, 1 FROM items_itemtag t WHERE t.tag >= %(begin)s AND t.tag < %(end)s ORDER BY t.tag LIMIT 1)
        UNION ALL
        SELECT (SELECT t.tag FROM items_itemtag t WHERE t.tag > walk.tag AND t.tag < %(end)s ORDER BY t.tag LIMIT 1),
            walk.place + 1
        FROM walk WHERE walk.tag IS NOT NULL AND walk.place < {TAGS}
    )
    SELECT walk.tag FROM walk CROSS JOIN LATERAL (
        SELECT count(DISTINCT i.sender_id) AS senders FROM (
            SELECT t.item_id FROM items_itemtag t WHERE t.tag = walk.tag ORDER BY t.item_id DESC LIMIT {USES}
        ) newest JOIN items_item i ON i.id = newest.item_id JOIN accounts_user s ON s.id = i.sender_id
        WHERE {public_post("i")} AND s.is_active
    ) used
    WHERE starts_with(walk.tag, %(begin)s) AND used.senders > 0
    ORDER BY walk.tag = %(begin)s DESC, used.senders DESC, walk.tag LIMIT {COUNT}
"""


BETWEEN = "\u200c\u200d\u00b7\u30fb\u05f3\u05f4"
"""Characters that may end a tag only while it is being typed."""


class Completion(NamedTuple):
    """A suggested text, its user, or an emoji's name."""

    text: str
    person: User | None = None
    name: str = ""


def completions(typed: str, reader: User) -> list[Completion]:
    """Up to `COUNT` texts to replace `typed`: users for "@…", hashtags for "#…", both for letters alone, emoji for
    ":…".
    """
    if typed.startswith((":", "\uff1a")):
        return [Completion(one.emoji, name=one.name) for one in _emoji(typed[1:])]
    sign, letters = SIGNS.get(typed[:1]), typed[1:] if typed[:1] in SIGNS else typed
    if not letters or len(letters) > LENGTH:
        return []
    if sign == "@":
        return _people(letters, reader)
    if sign == "#":
        return _tags(letters, reader)
    return _people(letters, reader)[: COUNT // 2] + _tags(letters, reader)[: COUNT // 2]


def _emoji(name: str) -> list[Emoji]:
    """Emoji with this name. One that begins with a digit may be a time of day, and must be a short code."""
    found = emoji_named(name, COUNT)
    if not name[:1].isdigit():
        return found
    code = name.lower().replace("_", " ")
    end = None if code.isdigit() else len(code)
    return [one for one in found if any(known[:end] == code for known in (*one.codes, one.names["en"][0]))]


def _people(letters: str, reader: User) -> list[Completion]:
    query = parse(f"@{letters}")
    if len(query.names) != 1:
        return []
    (name,) = query.names
    found = search_users(query, reader, limit=FOUND)
    named = [user for user in found if name in user.username.lower() or name in folded(user.display_name)]
    named.sort(key=lambda user: not user.username.lower().startswith(name))  # a stable sort
    return [Completion(f"@{user.username}", user) for user in named[:COUNT]]


def _tags(letters: str, reader: User) -> list[Completion]:
    # Digits alone are no canonical tag yet.
    begin = canonical_tag(letters.rstrip(BETWEEN)) or (letters if letters.isdigit() and letters.isascii() else None)
    if begin is None:
        return []
    there = [row[0] for row in fetch(TAGGED, {"begin": begin, "end": f"{begin}\U0010fffd"})]
    # One sender could fill the list with tags of their own. So tags of several people come first.
    tags = [tag for tag in there if tag == begin] + popular_with_prefix(begin, reader, COUNT) + there
    return [Completion(f"#{tag}") for tag in list(dict.fromkeys(tags))[:COUNT]]
