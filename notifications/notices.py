"""What the page adds to an entry: the answered item, followers to follow back, requests to decide."""

from collections.abc import Sequence
from typing import NamedTuple

from accounts.cards import UserCard
from accounts.models import User
from items.bodies import ItemBody
from items.hydrate import visible_bodies
from items.pages.cards import Card, Cards
from notifications.feed import Entry
from relations.people import followable_among

ANSWERABLE = ("reply", "quote", "mention")
"""The kinds of entries with buttons to like and reply."""


class Notice(NamedTuple):
    """An entry as a row of the page."""

    entry: Entry
    quoted: ItemBody | None
    """The item that the entry's item answers or quotes, if the reader may see it."""
    back: list[User]
    """New followers whom the reader neither follows nor asks to follow. Each row has only its own day's."""
    card: Card | None
    """The item's card, if the row has buttons to like and reply."""

    @property
    def asking(self) -> list[UserCard]:
        """Users whose requests the row decides, without decided ones."""
        return self.entry.actors if self.entry.kind == "follow_request" else []


def notices(entries: Sequence[Entry], reader: User) -> list[Notice]:
    """The rows of these entries, by at most two queries."""
    answered = [entry.item.reply_to for entry in entries if entry.item and entry.kind in ANSWERABLE]
    parents = list(dict.fromkeys(int(parent) for parent in answered if parent))
    quoted = {item.id: item for item in visible_bodies(parents, reader)}
    followers = {int(card.id) for entry in entries if entry.kind == "follow" for card in entry.actors}
    strangers = followable_among(reader, followers)
    rows, cards = [], Cards(reader, [entry.item for entry in entries if entry.item])
    for entry in entries:
        named = entry.actors if entry.kind == "follow" else []
        back = [strangers[int(card.id)] for card in named if int(card.id) in strangers]
        parent = entry.item.reply_to if entry.item and entry.kind in ANSWERABLE else None
        card = cards.one(entry.item) if entry.item and entry.kind in ANSWERABLE else None
        rows.append(Notice(entry, _own_quoted(entry) or quoted.get(parent or ""), back, card))
    return rows


def _own_quoted(entry: Entry) -> ItemBody | None:
    return entry.item.quote.item if entry.kind == "quote" and entry.item and entry.item.quote else None
